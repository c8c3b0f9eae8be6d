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

// row is one of them; why says, for one that misses its goal, where that comes from.
type row struct{ what, goal, figure, why string }

func newReport(progress io.Writer) *report { return &report{progress: progress} }

func (r *report) add(what, goal, format string, args ...any) {
	r.rows = append(r.rows, row{what: what, goal: goal, figure: fmt.Sprintf(format, args...)})
	fmt.Fprintf(r.progress, "%s: %s (goal: %s)\n", what, r.rows[len(r.rows)-1].figure, goal)
}

// unless marks the last row as one that misses its goal, unless it is met, and keeps
// what a profile says of it.
func (r *report) unless(met bool, why string) {
	if !met {
		r.rows[len(r.rows)-1].why = why
	}
}

// String gives the table.
func (r *report) String() string {
	var b strings.Builder
	b.WriteString("| what | goal | measured |\n| --- | --- | --- |\n")
	for _, row := range r.rows {
		missed := ""
		if row.why != "" {
			missed = " **missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s%s |\n", row.what, row.goal, row.figure, missed)
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
	r.short(&b)
	return b.String()
}

// short writes which goals were missed.
func (r *report) short(b *strings.Builder) {
	b.WriteString("\n## What falls short\n\n")
	none := true
	for _, row := range r.rows {
		if row.why == "" {
			continue
		}
		none = false
		fmt.Fprintf(b, "- *%s*: %s\n", row.what, row.why)
	}
	if none {
		b.WriteString("No goal was missed.\n")
	}
}

const method = `## How

One host and one edge, with a second one for large Releases, each a whole control plane (etcd with fsync,
kube-apiserver with audit log, controller-manager, scheduler), the hub and the agent as processes with the arguments of the
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
- *1,000 Releases*: made by 16 at a time, each with content of its own, until a watch on the hub has shown the last
  of them Ready. The render of each is made, stored, signed, fetched, applied and reported.
- *ten changed waves*: a patch of content.path on the hub changes one ConfigMap in each of ten waves, until a watch on
  the edge has shown the last of them, and until the Release is Ready at its new generation.
- *10,000 objects, 50 MB*: out of small charts, on an edge that has nothing else, from the creation of the Release until
  it is Ready; then it is deleted. Peaks are counted anew before each; that of render workers, which are processes of
  their own, is read 50 times a second.
- *memory*: RssAnon (private) and VmRSS of /proc/PID/status; VmHWM for the peak, which is since the agent's start or, of
  large Releases, since before they were made. *At rest* is when the agent has given back what its work left behind, which
  it does within a minute or so after it.
- *simulated agents*: the real link code in a process of its own, with an engine that takes orders,
  fetches and verifies their renders, and reports them Ready. Their hub is another one: the real program
  with --standalone and an etcd of its own beside it, as a process, so that its memory is the hub's alone;
  GOMEMLIMIT is 2 GiB. The outer TLS is its own, so that two TLS layers are counted. Agents dial from many
  loopback addresses. Their identities are made as joins leave them, with the hub's keys and one write
  a Cluster: joins are limited to 100 a second. Each has connected once before the hub that is measured
  starts, so that first statuses are written.
- *memory per idle agent*: growth of the hub's private memory since it was ready with all Clusters and nobody
  connected, by the number of agents, read after they had been idle (30 s for the first 4,000, 100 s
  for all). What is live on the heap is what the last collection found; goroutines and stacks are those of
  /metrics.
- *after a push*: that figure, and what the hub's memory has grown by since for each agent that was pushed to,
  a minute after the last had settled.
- *bytes of an idle websocket*: counted by the simulated agents at the TCP connection; the figure is the length of
  the TLS records without their headers and tags, which is the frames of the websocket in both
  directions. Dials, a renewal of the certificate a day, and TCP and IP are not in it.
- *objects that are not ours*: ConfigMaps of 0.3 KB in another namespace. Calls are those of the agent's account
  in the audit log from the moment the second reading was taken.
- *hub restart*, *back*: kill -9 of the hub with all agents connected and all Releases settled, started again at
  once; one kill gives all these figures. Time runs from the start of the new process for *ready*, from the
  kill for *back*: an agent is back when it is connected and has verified the head of its orders. The control planes
  of the other measurements have ended by then. Orders signed and status writes are the new process's own count; etcd
  writes are the difference in its revision. As many Releases as the goal names take
  ` + "`" + `make bench BENCH="-releases 20000"` + "`" + `.
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
