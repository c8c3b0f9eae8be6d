// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// goroutines of this process, each as text.
func goroutines() []string {
	buf := make([]byte, 4<<20)
	return strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
}

func TestASessionAtRestHasOneGoroutineWhichWaitsForBytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only there can a wait be left to a goroutine of its own")
	}
	r := start(t)
	const sessions = 5
	for i := range sessions {
		r.session(t, fmt.Sprintf("at-rest-%d", i))
	}
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting, others := 0, []string{}
		for _, one := range goroutines() {
			switch {
			case strings.Contains(one, "tunnel.(*serverMux).wait("):
				waiting++
			case strings.Contains(one, "tunnel.(*serverMux)"), strings.Contains(one, "gateway.(*session)"):
				others = append(others, one)
			}
		}
		if waiting == sessions && len(others) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%d of %d sessions wait; besides:\n%s", waiting, sessions, strings.Join(others, "\n\n"))
		}
	}
}
