// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/e2e/install"
)

const (
	// workers are Clusters whose agents are killed side by side.
	workers = 4
	// few is how many instants of each pass are tried without CONVOY_SOAK.
	few = 5
	// silence is how long no call means that an agent has nothing to do.
	silence = 700 * time.Millisecond
	// becomePatience for what an agent does after the hub knows that all is done.
	becomePatience = 20 * time.Second
)

// phases of a Release's life; each begins with the agent away and the hub's order there.
var phases = []string{"install", "upgrade with prune", "removal"}

// job is one life of a Release with one kill in each phase.
type job struct {
	n     []int // by phase
	after bool
}

func (j job) String() string {
	when := "before it is forwarded"
	if j.after {
		when = "after it was answered"
	}
	return fmt.Sprintf("killed at call %v, %s", j.n, when)
}

// jobs gives every n of the longest phase, or a few spread over each, in two passes.
func jobs(calls []int) []job {
	longest := 0
	for _, n := range calls {
		longest = max(longest, n)
	}
	var out []job
	for pass, after := range []bool{false, true} {
		if soak() {
			for n := 1; n <= longest; n++ {
				out = append(out, job{[]int{n, n, n}, after})
			}
			continue
		}
		for i := range few {
			j := job{after: after}
			for _, total := range calls {
				// The two passes hit different calls.
				j.n = append(j.n, 1+(2*i+pass)*(total-1)/(2*few-1))
			}
			out = append(out, j)
		}
	}
	return out
}

// TestAnAgentKilledAtAnyCallEndsInTheStateOfAnUndisturbedRun: install, upgrade with
// prune and removal of twelve objects in two waves, with hooks before and after each.
func TestAnAgentKilledAtAnyCallEndsInTheStateOfAnUndisturbedRun(t *testing.T) {
	limit := 8 * time.Minute
	if soak() {
		limit = 90 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	all := make([]*worker, workers)
	joining, joined := context.WithTimeoutCause(ctx, patience, errors.New("the agents have not joined"))
	group, gctx := errgroup.WithContext(joining)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = newWorker(gctx, i)
			return err
		})
	}
	err := group.Wait()
	joined()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, w := range all {
			if err := w.counter.close(); err != nil {
				t.Error(err)
			}
		}
	}()
	// The undisturbed run.
	var want []result
	var calls []int
	for _, phase := range phases {
		limited, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took too long"))
		r, err := all[0].run(limited, phase, 0, false, nil)
		cancel()
		if err != nil {
			t.Fatalf("undisturbed %s: %v\n%s", phase, err, install.Tail(all[0].agent.Log()))
		}
		want, calls = append(want, r), append(calls, r.calls)
		t.Logf("undisturbed %s: %d calls, %d objects, Secrets of the agent: %v", phase, r.calls, len(r.state.Objects), r.state.Secrets)
	}
	if err := all[0].tidied(ctx); err != nil {
		t.Fatal(err)
	}
	if got := []int{len(want[0].state.Objects), len(want[1].state.Objects), len(want[2].state.Objects)}; !cmp.Equal(got, []int{12, 10, 0}) {
		t.Fatalf("the undisturbed run left %v objects", got)
	}
	once := []string{"PreSync presync Succeeded", "PostSync postsync Succeeded"}
	if diff := cmp.Diff([][]string{once, slices.Concat(once, once)}, [][]string{want[0].state.Hooks, want[1].state.Hooks}); diff != "" {
		t.Fatalf("the undisturbed run ran hooks (-want +got):\n%s", diff)
	}

	queue := jobs(calls)
	began, kills := time.Now(), 0
	var mu sync.Mutex
	next := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(queue) == 0 || t.Failed() {
			return job{}, false
		}
		j := queue[0]
		queue = queue[1:]
		return j, true
	}
	total := len(queue)
	group, gctx = errgroup.WithContext(ctx)
	for _, w := range all {
		group.Go(func() error {
			for j, ok := next(); ok; j, ok = next() {
				killed, err := w.life(gctx, t, j, want)
				mu.Lock()
				kills += killed
				mu.Unlock()
				if err != nil {
					return fmt.Errorf("%s, %s: %w\n%s", w.namespace, j, err, install.Tail(w.agent.Log()))
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("calls of install, upgrade, removal: %v; %d lives with %d kills in %s", calls, total, kills, time.Since(began).Round(time.Second))
}

// life plays all phases with a kill in each and compares what each leaves.
func (w *worker) life(ctx context.Context, t *testing.T, j job, want []result) (kills int, err error) {
	var before map[string]string
	for i, phase := range phases {
		limited, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took too long"))
		got, err := w.run(limited, phase, j.n[i], j.after, &want[i].state)
		cancel()
		if err != nil {
			return kills, fmt.Errorf("%s: %w", phase, err)
		}
		if got.killed {
			kills++
		}
		if diff := cmp.Diff(want[i].state.Objects, got.state.Objects); diff != "" {
			t.Errorf("%s, %s: objects differ from an undisturbed run (-undisturbed +killed):\n%s", phase, j, diff)
		}
		if diff := cmp.Diff(want[i].state.Hooks, got.state.Hooks); diff != "" {
			t.Errorf("%s, %s: runs of hooks differ from an undisturbed run (-undisturbed +killed):\n%s", phase, j, diff)
		}
		if diff := cmp.Diff(want[i].state.Secrets, got.state.Secrets); diff != "" {
			t.Errorf("%s, %s: Secrets of the agent differ from an undisturbed run (-undisturbed +killed):\n%s", phase, j, diff)
		}
		for key, uid := range got.state.uids {
			if old := before[key]; old != "" && old != uid {
				t.Errorf("%s, %s: %s was deleted and made again", phase, j, key)
			}
		}
		before = got.state.uids
	}
	return kills, w.tidied(ctx)
}

// tidied waits until an agent that nothing disturbs has deleted what killed ones left
// of the layers of a Release that is gone.
func (w *worker) tidied(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("layers of a Release that is gone are left over"))
	defer cancel()
	w.counter.arm(0, false, nil)
	if err := w.agent.Start(ctx); err != nil {
		return err
	}
	for {
		s, err := look(ctx, shared.edge, w.namespace, w.agent.Namespace, w.uid)
		if err != nil {
			return err
		}
		if s.layers == 0 {
			return w.agent.Kill9(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(silence):
		}
	}
}
