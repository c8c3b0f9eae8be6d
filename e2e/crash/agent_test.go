// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
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

func namespaceOf(worker int) string { return fmt.Sprintf("crash-%d", worker) }

// phases of a Release's life; each begins with the agent away and the hub's order there.
var phases = []string{"install", "upgrade with prune", "removal"}

// worker is one Cluster whose agent runs behind a counter.
type worker struct {
	namespace string
	agent     *install.DirectAgent
	counter   *counter
	uid       string // of the Release
}

// newWorker joins an agent and leaves it killed. For 90 s the hub goes on to order for
// a Cluster that has no session, so that orders are there before an agent is.
func newWorker(ctx context.Context, i int) (*worker, error) {
	w := &worker{namespace: namespaceOf(i)}
	if err := shared.source(ctx, w.namespace); err != nil {
		return nil, err
	}
	if _, err := shared.edge.Kubectl(ctx, "create", "namespace", w.namespace); err != nil {
		return nil, err
	}
	var err error
	if w.agent, err = shared.hub.JoinDirect(ctx, shared.edge, w.namespace, "edge", "agent-"+w.namespace); err != nil {
		return nil, err
	}
	config, err := shared.edge.UserConfig("system:serviceaccount:"+w.agent.Namespace+":"+install.AgentName,
		"system:serviceaccounts", "system:serviceaccounts:"+w.agent.Namespace)
	if err != nil {
		return nil, err
	}
	if w.counter, err = newCounter(ctx, config); err != nil {
		return nil, err
	}
	w.agent.Kubeconfig = filepath.Join(shared.dir, w.namespace+".kubeconfig")
	if err := w.counter.kubeconfig(w.agent.Kubeconfig); err != nil {
		return nil, err
	}
	if err := w.agent.Start(ctx); err != nil {
		return nil, err
	}
	if err := shared.hub.WaitCluster(ctx, w.namespace, "edge"); err != nil {
		return nil, fmt.Errorf("%w: %s", err, install.Tail(w.agent.Log()))
	}
	// The hub orders nothing before the agent has said what it holds: one whole life
	// shows that it has.
	for _, phase := range []string{phases[0], phases[2]} {
		if err := w.order(ctx, phase); err != nil {
			return nil, err
		}
		if err := w.done(ctx, phase); err != nil {
			return nil, err
		}
	}
	return w, w.agent.Kill9(ctx)
}

// result of one phase: the calls that it took and the state that it left.
type result struct {
	calls  int
	writes []string // of the hub, by key
	killed bool
	state  state
}

// run plays one phase. The agent is killed at its n-th call, and a fresh one ends the
// work; with n 0, or one beyond the last call, nothing disturbs it. What is left is
// given a while to become what is wanted: the last steps come after the hub knows.
func (w *worker) run(ctx context.Context, phase string, n int, after bool, want *state) (result, error) {
	if err := w.order(ctx, phase); err != nil {
		return result{}, err
	}
	var out result
	killed := w.counter.arm(n, after, func() error { return syscall.Kill(w.agent.Process().PID(), syscall.SIGKILL) })
	if err := w.agent.Start(ctx); err != nil {
		return out, err
	}
	done := make(chan error, 1)
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { done <- w.done(wait, phase) }()
	select {
	case <-killed:
		out.killed = true
		if _, err := w.agent.Process().Wait(ctx); err != nil {
			return out, err
		}
		w.counter.arm(0, false, nil)
		if err := w.agent.Start(ctx); err != nil {
			return out, err
		}
		if err := <-done; err != nil {
			return out, err
		}
	case err := <-done:
		if err != nil {
			return out, err
		}
	}
	if err := w.silent(ctx); err != nil {
		return out, err
	}
	var err error
	if out.calls, _, err = w.counter.counted(); err != nil {
		return out, err
	}
	if !out.killed {
		select {
		case <-killed: // at the very end, by a call after all was done
			out.killed = true
		default:
		}
	}
	if !w.agent.Process().Running() {
		w.counter.arm(0, false, nil)
		if err := w.agent.Start(ctx); err != nil {
			return out, err
		}
	}
	if out.state, err = w.become(ctx, want); err != nil {
		return out, err
	}
	if phase != phases[2] {
		if out.state.Hooks, err = w.hooks(ctx, want); err != nil {
			return out, err
		}
	}
	return out, w.agent.Kill9(ctx)
}

// become looks until what is there is what is wanted, if that is known, or for a
// while.
func (w *worker) become(ctx context.Context, want *state) (state, error) {
	for began := time.Now(); ; {
		got, err := look(ctx, shared.edge, w.namespace, w.agent.Namespace, w.uid)
		if err != nil || want == nil || time.Since(began) > becomePatience ||
			cmp.Equal(got.Objects, want.Objects) && cmp.Equal(got.Secrets, want.Secrets) {
			return got, err
		}
		select {
		case <-ctx.Done():
			return got, context.Cause(ctx)
		case <-time.After(silence / 2):
		}
	}
}

// hooks reads which runs of hooks the hub knows of, when they are as many as wanted, if
// that is known.
func (w *worker) hooks(ctx context.Context, want *state) ([]string, error) {
	release, err := w.until(ctx, func(r *corev1alpha1.Release) bool { return want == nil || len(r.Status.Hooks) >= len(want.Hooks) })
	if err != nil {
		return nil, err
	}
	var out []string
	for _, run := range slices.Backward(release.Status.Hooks) {
		out = append(out, fmt.Sprintf("%s %s %s", run.Phase, run.ObjectName, run.State))
	}
	return out, nil
}

// order has the hub order what the phase is about, with the agent away.
func (w *worker) order(ctx context.Context, phase string) error {
	client := shared.host.Dynamic().Resource(install.Releases).Namespace(w.namespace)
	switch phase {
	case phases[0]:
		if err := shared.hub.Create(ctx, install.Release(w.namespace, "app", "edge", "apps", w.namespace+"/v1")); err != nil {
			return err
		}
		release, err := w.until(ctx, func(r *corev1alpha1.Release) bool { return r.Status.Sequence > 0 })
		if err != nil {
			return err
		}
		w.uid = string(release.UID)
		return nil
	case phases[1]:
		before, err := w.until(ctx, func(*corev1alpha1.Release) bool { return true })
		if err != nil {
			return err
		}
		body := fmt.Sprintf(`{"spec":{"content":{"path":%q}}}`, w.namespace+"/v2")
		if _, err := client.Patch(ctx, "app", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			return err
		}
		_, err = w.until(ctx, func(r *corev1alpha1.Release) bool { return r.Status.Sequence > before.Status.Sequence })
		return err
	default:
		return client.Delete(ctx, "app", metav1.DeleteOptions{})
	}
}

// done waits until the hub says that the phase is over.
func (w *worker) done(ctx context.Context, phase string) error {
	if phase == phases[2] {
		return harness.WaitGone(ctx, shared.host.Dynamic(), install.Releases, w.namespace, "app")
	}
	_, err := w.until(ctx, func(r *corev1alpha1.Release) bool {
		for _, c := range r.Status.Conditions {
			if c.Type == corev1alpha1.ConditionReady {
				return c.Status == metav1.ConditionTrue && r.Status.ObservedGeneration == r.Generation && r.Status.AppliedRef == r.Status.RenderRef
			}
		}
		return false
	})
	return err
}

func (w *worker) until(ctx context.Context, cond func(*corev1alpha1.Release) bool) (out *corev1alpha1.Release, err error) {
	_, err = harness.WaitFor(ctx, shared.host.Dynamic(), install.Releases, w.namespace, "app", func(u *unstructured.Unstructured) (bool, error) {
		if out, err = harness.As[corev1alpha1.Release](u); err != nil {
			return false, err
		}
		return cond(out), nil
	})
	return out, err
}

// silent waits until the agent has made no call for a while.
func (w *worker) silent(ctx context.Context) error {
	for {
		_, last, err := w.counter.counted()
		if err != nil || time.Since(last) >= silence {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(silence - time.Since(last)):
		}
	}
}

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
