// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// victimEnv makes the test binary the program that TestKilledHarness kills.
const victimEnv = "CONVOY_HARNESS_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		os.Exit(victim(context.Background()))
	}
	goleak.VerifyTestMain(m)
}
