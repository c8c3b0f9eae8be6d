// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/tunnel"
)

// mixed makes a render of twenty objects.
func mixed(ns string) string {
	var out strings.Builder
	for i := range 12 {
		out.WriteString(configMap(ns, fmt.Sprintf("c%d", i), "k", "v", "l", strings.Repeat("text ", 40)))
	}
	for i := range 2 {
		fmt.Fprintf(&out, "apiVersion: v1\nkind: Secret\nmetadata: {name: s%d}\nstringData: {password: swordfish}\n---\n", i)
		fmt.Fprintf(&out, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a%d}\n---\n", i)
		fmt.Fprintf(&out, "apiVersion: v1\nkind: Service\nmetadata: {name: s%d}\nspec: {selector: {app: d%d}, ports: [{port: 80}]}\n---\n", i, i)
		fmt.Fprintf(&out, `apiVersion: apps/v1
kind: Deployment
metadata: {name: d%d}
spec:
  replicas: 1
  selector: {matchLabels: {app: d%d}}
  template:
    metadata: {labels: {app: d%d}}
    spec:
      containers: [{name: c, image: "example/app:1", env: [{name: A, value: b}], resources: {requests: {cpu: 10m}}}]
---
`, i, i, i)
	}
	return out.String()
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// planeCPU is what the programs of the control plane have used so far.
func planeCPU(b *testing.B) string {
	b.Helper()
	var out []string
	for _, c := range []harness.Component{harness.APIServer, harness.Etcd, harness.ControllerManager, harness.Scheduler, harness.Kwok} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", plane.PID(c)))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		ticks := 0
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(f)
			if err != nil {
				b.Fatal(err)
			}
			ticks += n
		}
		out = append(out, fmt.Sprintf("%s %.1fs", c, float64(ticks)/100))
	}
	return strings.Join(out, ", ")
}

// memory reads RssAnon and VmRSS of this process, in KiB.
func memory(b *testing.B) (anon, rss string) {
	b.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			anon = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			rss = strings.TrimSpace(v)
		}
	}
	return anon, rss
}

// BenchmarkThousandObjects applies 1,000 objects in 50 Releases, and then repairs
// edits. The CPU is that of this process: engine, state and the little that the test
// does. Run it with -benchtime 1x.
func BenchmarkThousandObjects(b *testing.B) {
	debug.SetGCPercent(40)
	const releases = 50
	x := newIdleBench(b)
	x.log = logr.Discard()
	x.secretState()
	x.start()
	var orders []tunnel.Order
	for i := range releases {
		ns := x.namespace(fmt.Sprintf("cost-%d", i))
		orders = append(orders, x.order(ns, ns, mixed(ns)))
	}
	b.ResetTimer()
	b.Logf("CPU of the control plane before: %s", planeCPU(b))
	start, began := time.Now(), cpu()
	for _, o := range orders {
		x.accept(o)
	}
	for _, o := range orders {
		x.report(o.Release.UID, "applied", func(r tunnel.Report) bool { return r.Applied.Status == tunnel.True })
	}
	there, spent := time.Since(start), cpu()-began
	b.Logf("CPU of the control plane when all is there: %s", planeCPU(b))
	for _, o := range orders {
		x.applied(o)
	}
	ready, total := time.Since(start), cpu()-began
	anon, rss := memory(b)
	b.Logf("1,000 objects in 50 Releases: there %s with %s CPU, ready %s with %s CPU, %d calls, %d reports, RssAnon %s, VmRSS %s",
		there, spent, ready, total, x.calls.n.Load(), len(x.all), anon, rss)
	debug.FreeOSMemory()
	anon, rss = memory(b)
	b.Logf("after a collection RssAnon %s, VmRSS %s", anon, rss)

	var took []time.Duration
	for i := range 200 {
		ns := fmt.Sprintf("cost-%d", i%releases)
		at := time.Now()
		x.edit(configmaps, ns, "c3", "somebody", `{"data":{"k":"edited"}}`)
		x.live(configmaps, ns, "c3", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
		took = append(took, time.Since(at))
	}
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	b.Logf("repair p50 %s p99 %s max %s", took[100], took[198], took[199])

	took = nil
	for i := range 50 {
		ns := x.namespace(fmt.Sprintf("single-%d", i))
		var docs strings.Builder
		for j := range 10 {
			docs.WriteString(configMap(ns, fmt.Sprintf("c%d", j), "k", "v"))
		}
		o := x.order(ns, ns, docs.String())
		at := time.Now()
		x.accept(o)
		x.report(o.Release.UID, "applied", func(r tunnel.Report) bool { return r.Applied.Status == tunnel.True })
		took = append(took, time.Since(at))
	}
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	b.Logf("one Release of 10 objects, from order to there: p50 %s p99 %s", took[25], took[49])
	anon, rss = memory(b)
	b.Logf("RssAnon %s, VmRSS %s", anon, rss)
}
