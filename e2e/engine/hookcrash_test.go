// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/tunnel"
)

// everyWrite of the life of a Release with hooks is hit with CONVOY_SOAK=1, one in
// fewWrites without.
const fewWrites = 8

// hookLife is install, an upgrade that fails, one that does not, and removal, of renders
// with hooks of all phases.
func hookLife(b *bench, ns string) []tunnel.Order {
	render := func(value string) string {
		long := func(phase string, more ...string) string { return hookOf(phase, append(more, "hook-timeout", "60")...) }
		return configMap(ns, "main", "k", value) + job("before", long("PreSync")) +
			hookMap("account", long("PreSync", "sync-wave", "-1", "hook-delete-policy", "BeforeHookCreation,HookSucceeded")) +
			hookMap("after", long("PostSync")) + hookMap("alarm", long("SyncFailed")) +
			hookMap("farewell", long("PreDelete")) + hookMap("gone", long("PostDelete"))
	}
	return []tunnel.Order{
		b.order(ns, ns, render("v1"), withHooks), b.order(ns, ns, render("v1")+stuck, withHooks, seconds(2), once),
		b.order(ns, ns, render("v2"), withHooks), b.bare(ns, tunnel.VerbRemove),
	}
}

// once lets an order fail for good.
func once(o *tunnel.Order) { o.Policy.Retry = &tunnel.Retry{Limit: 0, MinSeconds: 1, MaxSeconds: 1} }

// over waits until an order is carried out, or has failed for good, or the engine was
// killed, which it says.
func (b *bench) over(o tunnel.Order, killed <-chan struct{}) bool {
	b.t.Helper()
	deadline := time.After(patience)
	for {
		b.mu.Lock()
		r := b.latest[o.Release.UID]
		b.mu.Unlock()
		if r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True && (r.Done || o.Verb == tunnel.VerbApply && r.Healthy.Status == tunnel.True) {
			return false
		}
		if r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "RetriesExhausted" {
			return false
		}
		select {
		case <-b.changed:
		case <-killed:
			return true
		case <-deadline:
			b.t.Fatalf("neither over nor killed: %+v", r)
		}
	}
}

// lives gives the runs that each order of a life left, and what was made for them.
func (b *bench) lives(ns string, orders []tunnel.Order, killed chan struct{}) (runs [][]string) {
	b.t.Helper()
	for _, o := range orders {
		b.accept(o)
		if b.over(o, killed) {
			killed = nil // there is only one death
			b.restart()
			if b.runner.Have()["uid-"+ns] < o.Sequence {
				b.accept(o) // as the hub does on connect
			}
			b.over(o, nil)
		}
		b.mu.Lock()
		r := b.latest[o.Release.UID]
		b.mu.Unlock()
		all := ran(r)
		for i, run := range all {
			all[i] = strings.ReplaceAll(run, ns, "NS")
		}
		runs = append(runs, all)
	}
	return runs
}

// made counts the objects of hooks that the server made in a namespace.
func (b *bench) made(ns string) map[string]int {
	b.t.Helper()
	out := map[string]int{}
	for event, err := range harness.Audit(b.plane.AuditLog(), harness.WithCode(201), harness.Finished()) {
		if err != nil {
			b.t.Fatal(err)
		}
		if event.Object.Namespace == ns && event.Verb == "patch" && !strings.Contains(event.URI, "dryRun") && event.Object.Name != "main" {
			out[event.Object.Resource+" "+event.Object.Name]++
		}
	}
	return out
}

func TestHooksOfAnEngineKilledAtAnyWriteAreNeitherLostNorRepeated(t *testing.T) {
	t.Parallel()
	quiet := newIdleBench(t)
	quiet.secretState()
	quiet.start()
	ns := quiet.namespace("hookcrash-quiet")
	want := quiet.lives(ns, hookLife(quiet, ns), nil)
	wantMade := quiet.made(ns)
	writes := int(quiet.calls.writes.Load())
	if diff := cmp.Diff(map[string]int{
		"jobs before": 3, "configmaps account": 3, "configmaps after": 2, "configmaps alarm": 1, "configmaps farewell": 1, "configmaps gone": 1,
		"deployments stuck": 1,
	}, wantMade); diff != "" {
		t.Fatalf("the undisturbed run made (-want +got):\n%s", diff)
	}
	t.Logf("the undisturbed run made %d writes", writes)
	step := fewWrites
	if os.Getenv("CONVOY_SOAK") != "" {
		step = 1
	}
	for pass, lost := range []bool{false, true} {
		for n := 1 + pass*step/2; n <= writes; n += step {
			t.Run(fmt.Sprintf("write %d, answer lost %v", n, lost), func(t *testing.T) {
				t.Parallel()
				b := newIdleBench(t)
				b.secretState()
				killed := make(chan struct{})
				b.killAt(int64(n), lost, killed)
				b.start()
				ns := b.namespace(fmt.Sprintf("hookcrash-%d-%v", n, lost))
				if diff := cmp.Diff(want, b.lives(ns, hookLife(b, ns), killed)); diff != "" {
					t.Errorf("runs differ from those of an undisturbed life (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(wantMade, b.made(ns)); diff != "" {
					t.Errorf("objects of hooks that were made (-want +got):\n%s", diff)
				}
				b.gone(configmaps, ns, "main")
				b.gone(jobs, ns, "before")
				b.get(configmaps, ns, "gone")
			})
		}
	}
}
