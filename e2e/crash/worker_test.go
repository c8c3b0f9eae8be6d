// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

func namespaceOf(worker int) string { return fmt.Sprintf("crash-%d", worker) }

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
