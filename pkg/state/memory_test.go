// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"testing"

	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/state/statetest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	statetest.Conformance(t, func(*testing.T) func() engine.State {
		m := state.NewMemory()
		return func() engine.State { return m }
	})
}
