// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"testing"

	"kumodo.io/convoy/agent/state"
	"kumodo.io/convoy/agent/state/statetest"
	"kumodo.io/convoy/pkg/engine"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	statetest.Conformance(t, func(*testing.T) func() engine.State {
		m := state.NewMemory()
		return func() engine.State { return m }
	})
}
