// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// hubWorker is the number of the Cluster whose hub is killed.
const hubWorker = workers

// rollout is one phase of a Release's life with the agent connected.
type rollout struct {
	*worker
	t *testing.T
	// sequence is the greatest that the hub ever showed, and last what it showed last.
	sequence int64
	last     []string
}

// ask does what a user does, until the hub has taken it: a killed hub answers nothing,
// and may have taken it all the same.
func (r *rollout) ask(ctx context.Context, phase string) error {
	client := shared.host.Dynamic().Resource(install.Releases).Namespace(r.namespace)
	for {
		var err error
		switch phase {
		case phases[0]:
			err = shared.hub.Create(ctx, install.Release(r.namespace, "app", "edge", "apps", r.namespace+"/v1"))
			if apierrors.IsAlreadyExists(errors.Unwrap(err)) {
				err = nil
			}
		case phases[1]:
			body := fmt.Sprintf(`{"spec":{"content":{"path":%q}}}`, r.namespace+"/v2")
			_, err = client.Patch(ctx, "app", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		default:
			err = client.Delete(ctx, "app", metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				err = nil
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// play plays one phase; the hub is killed at its n-th write and started again.
func (r *rollout) play(ctx context.Context, phase string, n int, after bool, want *state) (result, error) {
	var out result
	hub := shared.hub
	killed := shared.relay.arm(n, after, func() error { return syscall.Kill(hub.Process().PID(), syscall.SIGKILL) })
	done := make(chan error, 1)
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if err := r.ask(wait, phase); err != nil {
			done <- err
			return
		}
		done <- r.settled(wait, phase)
	}()
	restart := func() error {
		out.killed = true
		if _, err := hub.Process().Wait(ctx); err != nil {
			return err
		}
		shared.relay.arm(0, false, nil)
		return hub.Up(ctx)
	}
	select {
	case <-killed:
		if err := restart(); err != nil {
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
	// Writes that follow: none is part of a rollout that is settled, but the tombstone
	// of a deleted Release goes after the agent has said so.
	select {
	case <-killed:
		if !out.killed {
			if err := restart(); err != nil {
				return out, err
			}
		}
	case <-time.After(2 * silence):
	}
	writes, err := shared.relay.seen()
	if err != nil {
		return out, err
	}
	out.calls, out.writes = len(writes), writes
	out.state, err = r.become(ctx, want)
	return out, err
}

// settled waits until the hub says that the phase is over. Sequences that it shows
// never go back.
func (r *rollout) settled(ctx context.Context, phase string) error {
	if phase == phases[2] {
		r.sequence = 0
		return harness.WaitGone(ctx, shared.host.Dynamic(), install.Releases, r.namespace, "app")
	}
	path := r.namespace + map[string]string{phases[0]: "/v1", phases[1]: "/v2"}[phase]
	release, err := r.until(ctx, func(now *corev1alpha1.Release) bool {
		if now.Status.Sequence < r.sequence {
			r.t.Errorf("%s: the sequence went back from %d to %d", phase, r.sequence, now.Status.Sequence)
		}
		r.sequence = max(r.sequence, now.Status.Sequence)
		r.last = append(r.last, fmt.Sprintf("generation %d path %s observed %d sequence %d render %.14s applied %.14s %v",
			now.Generation, now.Spec.Content.Path, now.Status.ObservedGeneration, now.Status.Sequence, now.Status.RenderRef, now.Status.AppliedRef, now.Status.Conditions))
		for _, c := range now.Status.Conditions {
			if c.Type == corev1alpha1.ConditionReady {
				return c.Status == metav1.ConditionTrue && now.Spec.Content.Path == path && now.Status.ObservedGeneration == now.Generation &&
					now.Status.AppliedRef == now.Status.RenderRef
			}
		}
		return false
	})
	if err == nil {
		r.uid = string(release.UID)
	}
	return err
}

// TestAHubKilledAtAnyWriteOfARolloutEndsInTheStateOfAnUndisturbedRun: the agent stays.
func TestAHubKilledAtAnyWriteOfARolloutEndsInTheStateOfAnUndisturbedRun(t *testing.T) {
	limit := 6 * time.Minute
	if soak() {
		limit = 60 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	joining, joined := context.WithTimeoutCause(ctx, patience, errors.New("the agent has not joined"))
	defer joined()
	w, err := newWorker(joining, hubWorker)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.counter.close(); err != nil {
			t.Error(err)
		}
	}()
	w.counter.arm(0, false, nil)
	if err := w.agent.Start(ctx); err != nil {
		t.Fatal(err)
	}
	r := &rollout{worker: w, t: t}
	var want []result
	var calls []int
	for _, phase := range phases {
		got, err := r.play(ctx, phase, 0, false, nil)
		if err != nil {
			t.Fatalf("undisturbed %s: %v\n%s", phase, err, install.Tail(shared.hub.Log()))
		}
		want, calls = append(want, got), append(calls, got.calls)
		t.Logf("undisturbed %s: %d writes: %v", phase, got.calls, got.writes)
		if have := len(got.state.Objects); have != []int{12, 10, 0}[len(want)-1] {
			t.Fatalf("undisturbed %s left %d objects; the Release: %+v", phase, have, r.last)
		}
	}
	queue := hubJobs(calls)
	began, kills := time.Now(), 0
	for _, j := range queue {
		// A fresh agent: one whose sessions end again and again dials less and less often.
		if err := errors.Join(w.agent.Kill9(ctx), w.agent.Start(ctx)); err != nil {
			t.Fatal(err)
		}
		var before map[string]string
		for i, phase := range phases {
			limited, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took too long"))
			got, err := r.play(limited, phase, j.n[i], j.after, &want[i].state)
			cancel()
			if err != nil {
				t.Fatalf("%s, hub %s: %v\n%s", phase, j, err, install.Tail(shared.hub.Log()))
			}
			if got.killed {
				kills++
			}
			if diff := cmp.Diff(want[i].state.Objects, got.state.Objects); diff != "" {
				t.Errorf("%s, hub %s: objects differ from an undisturbed run (-undisturbed +killed):\n%s", phase, j, diff)
			}
			if diff := cmp.Diff(want[i].state.Secrets, got.state.Secrets); diff != "" {
				t.Errorf("%s, hub %s: Secrets of the agent differ (-undisturbed +killed):\n%s", phase, j, diff)
			}
			for key, uid := range got.state.uids {
				if old := before[key]; old != "" && old != uid {
					t.Errorf("%s, hub %s: %s was deleted and made again", phase, j, key)
				}
			}
			before = got.state.uids
		}
		if t.Failed() {
			t.Logf("agent:\n%s\nhub:\n%s", install.Tail(w.agent.Log()), install.Tail(shared.hub.Log()))
			break
		}
	}
	t.Logf("writes of install, upgrade, removal: %v; %d lives with %d kills of the hub in %s", calls, len(queue), kills, time.Since(began).Round(time.Second))
}

// hubJobs gives every n of the longest phase in two passes, or two lives. An agent
// takes some seconds to come back to a hub, so that each kill costs them.
func hubJobs(writes []int) []job {
	if !soak() {
		return []job{{[]int{3, 2, 2}, false}, {[]int{2, 3, 0}, true}}
	}
	longest := 0
	for _, n := range writes {
		longest = max(longest, n)
	}
	var out []job
	for _, after := range []bool{false, true} {
		for n := 1; n <= longest; n++ {
			out = append(out, job{[]int{n, n, n}, after})
		}
	}
	return out
}
