// SPDX-License-Identifier: Apache-2.0

package gatewaytest

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
)

const aloneVariable = "CONVOY_TEST_ALONE"

// FakeClock runs a test under a fake clock, in a process of its own: yamux keeps
// timers for the whole process, also after a session has ended, and a timer of
// one clock must not meet another.
func FakeClock(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(aloneVariable) == "" {
		args := []string{"-test.run=^" + regexp.QuoteMeta(t.Name()) + "$", "-test.count=1"}
		if testing.Verbose() {
			args = append(args, "-test.v")
		}
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.CommandContext(t.Context(), program, args...)
		child.Env = append(os.Environ(), aloneVariable+"=1")
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
		return
	}
	// Twice empties the pools.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, test)
}
