// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"fmt"
	"os"
	"testing"

	"kumodo.io/convoy/e2e/harness"
)

// upEnv makes the test binary a program that starts the named plane and ends.
const upEnv = "CONVOY_KEEP_UP"

func TestMain(m *testing.M) {
	if name := os.Getenv(upEnv); name != "" {
		_, err := Up(context.Background(), name, harness.Options{
			UnsafeNoFsync: true,
			Without:       []harness.Component{harness.ControllerManager, harness.Scheduler, harness.Kwok},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
