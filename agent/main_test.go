// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"kumodo.io/convoy/agent/lease"
	"kumodo.io/convoy/agent/link"
)

func TestOnlyAFaultIsLoggedAsAnErrorWhenTheAgentEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		code  int
		fault bool
		says  string
	}{
		"told to":                    {nil, 0, false, "the agent ends"},
		"joined as another Cluster":  {fmt.Errorf("x: %w", errIdentityChanged), 1, false, "it joined as another Cluster"},
		"another agent has taken it": {errors.Join(lease.ErrLost), 1, false, "it has lost the Lease"},
		"nothing to be reached":      {fmt.Errorf("%w: for 31m", link.ErrUnreached), 1, false, "nothing was reached"},
		"something broke":            {errors.New("listen: address in use"), 1, true, "address in use"},
	} {
		var lines []string
		log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
		if code := end(log, c.err); code != c.code {
			t.Errorf("%s: ends with %d, want %d", name, code, c.code)
		}
		all := strings.Join(lines, "\n")
		if fault := strings.Contains(all, `"logger":"error"`) || strings.Contains(all, `"error":`); fault != c.fault || !strings.Contains(all, c.says) {
			t.Errorf("%s: logs %s", name, all)
		}
	}
}

func TestAProcessIsKnownToBeGoneOnItsOwnMachineOnly(t *testing.T) {
	t.Parallel()
	if name, gone := holder("convoy-agent-abc"); name != "convoy-agent-abc" || gone != nil {
		t.Errorf("a pod is named %q", name)
	}
	name, gone := holder("")
	host, _, ok := strings.Cut(name, "/")
	if !ok {
		t.Fatalf("named %q", name)
	}
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for other, want := range map[string]bool{
		name: false,
		fmt.Sprintf("%s/%d", host, ended.Process.Pid): true,
		fmt.Sprintf("other/%d", ended.Process.Pid):    false,
		host + "/-1":       false,
		host + "/x":        false,
		"convoy-agent-abc": false,
		fmt.Sprintf("%s-%d", host, ended.Process.Pid):  false,
		fmt.Sprintf("x%s/%d", host, ended.Process.Pid): false,
	} {
		if got := gone(other); got != want {
			t.Errorf("%s: gone %v, want %v", other, got, want)
		}
	}
}
