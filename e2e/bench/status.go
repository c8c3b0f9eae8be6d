// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// statusWrites runs the Go benchmark of status writes in process: it needs no
// control plane and shares none of its load.
func statusWrites(ctx context.Context, b *bed) error {
	out, err := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=StatusWrite", "-benchtime=3s", "./hub/apiserver/...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	found := false
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for i, field := range fields {
			if field == "writes/s" && i > 0 {
				found = true
				b.out.add("status writes in process, 32 writers", "1,350/s seen in a spike", "%s/s", fields[i-1])
			}
		}
	}
	if !found {
		return fmt.Errorf("the benchmark printed no writes/s: %s", out)
	}
	return nil
}
