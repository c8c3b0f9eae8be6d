// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report collects rows: what was measured, the goal, the figure.
type report struct {
	rows []row
	// progress is told each row as it is made.
	progress io.Writer
}

type row struct{ what, goal, figure string }

func newReport(progress io.Writer) *report { return &report{progress: progress} }

func (r *report) add(what, goal, format string, args ...any) {
	r.rows = append(r.rows, row{what, goal, fmt.Sprintf(format, args...)})
	fmt.Fprintf(r.progress, "%s: %s (goal: %s)\n", what, r.rows[len(r.rows)-1].figure, goal)
}

// String gives the table.
func (r *report) String() string {
	var b strings.Builder
	b.WriteString("| what | goal | measured |\n| --- | --- | --- |\n")
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.what, row.goal, row.figure)
	}
	return b.String()
}

// page gives docs/benchmarks.md.
func (r *report) page(ctx context.Context) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nWritten by `make bench`; do not edit. ")
	fmt.Fprintf(&b, "Measured on %s at revision %s, with %s on %s (%d cores).\n\n",
		time.Now().UTC().Format("2006-01-02"), output(ctx, "git", "describe", "--tags", "--always", "--dirty"),
		runtime.Version(), processor(), runtime.NumCPU())
	b.WriteString(method)
	b.WriteString("\n## Figures\n\n")
	b.WriteString(r.String())
	b.WriteString(short)
	return b.String()
}

// short is what a profile says of goals that were missed; it is kept up by hand.
const short = `
## What falls short

Hub memory for each idle agent. The figure above is the growth of the whole process, with the garbage that a Go
heap keeps between collections, and with the Cluster objects in the watch cache and in the hub's own. The link alone,
after a forced collection (` + "`" + `go test -run NONE -bench HubMemory -benchtime 1x ./e2e/simagent` + "`" + `, 1,000 agents), takes
59 KiB with one TLS layer and 72 KiB with two: of the 59, 26 are heap, 20 stacks (3 goroutines each) and 13
fragmentation. The multiplexer's reader with its buffer, its sender, and the goroutine that serves a session's orders
are what is left to take away.
`

const method = `## How

One host and one edge, each a whole control plane (etcd with fsync, kube-apiserver with audit log,
controller-manager, scheduler), the hub and the agent as processes with the arguments of the
manifests, a Git server over https: all on the one machine, so that every figure includes the
contention between them. Nothing else ran. Objects are ConfigMaps with about 0.3 KB of data.

- *apply to there*: from the start of the kubectl process that applies a Release on the hub until a
  watch on the edge has shown the last of its 10 objects. The source's revision is known to the hub;
  the content of each Release is new to it.
- *drift*: from the request of a merge patch on the edge until a watch shows the old value again.
  With the hub down, its process is stopped.
- *1,000 objects*: 50 Releases of 20 objects in one kubectl apply, until the last object is there and
  until the last Release is Ready on the hub, as watches show it. CPU is user and system time of the
  agent's process from before the apply until 3 s after the last Release is Ready.
- *memory*: RssAnon (private) and VmRSS of /proc/PID/status; VmHWM for the peak.
- *idle agents*: the simulated agents are the real link code in a process of their own; memory of the
  hub with them less memory without, by the number of agents. The link's outer TLS is the hub's own,
  so that two TLS layers are counted.
`

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// processor gives the model of the machine's CPU.
func processor() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// quantile of sorted or unsorted durations: the smallest value that at least q
// of them do not exceed.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
