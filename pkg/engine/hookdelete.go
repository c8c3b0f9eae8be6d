// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// makeRoom deletes what has the name of a hook's object, and waits until it is really
// gone, finalizers and all.
func (r *release) makeRoom(ctx context.Context, order tunnel.Order, h *hook, o *object, live map[string]any, deadline time.Time) error {
	uid := metaText(live, "uid")
	r.mu.Lock()
	o.sight.earlier, o.sight.earlierGone = uid, false
	r.mu.Unlock()
	for {
		m, err := r.runner.target.look(ctx, *h.res, h.id.Namespace, h.id.Name)
		if apierrors.IsNotFound(err) || err == nil && m.UID != uid {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Deletion == nil {
			err = r.runner.target.remove(ctx, *h.res, h.id.Namespace, h.id.Name, m.UID, m.ResourceVersion, metav1.DeletePropagationBackground)
			if apierrors.IsConflict(err) {
				continue
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		why := fmt.Sprintf("waits for %s of an earlier run to be gone", h.id)
		if len(m.Finalizers) > 0 {
			why += ", held by finalizer " + joinFields(m.Finalizers)
		}
		r.showBlocked(clip("hook "+why, maxMessage))
		// Should the event be missed, it is looked at again.
		at := r.now().Add(goneRecheck)
		if deadline.Before(at) {
			at = deadline
		}
		gone, err := r.waitUntil(ctx, order, at, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return o.sight.earlierGone
		})
		switch {
		case err != nil:
			return err
		case gone:
			return nil
		case !r.now().Before(deadline):
			return tooLate(h.timeoutFor(order), why)
		}
	}
}

// phasePassed deletes what hooks of a phase made whose policy says so, now that all of
// the phase have succeeded.
func (r *release) phasePassed(ctx context.Context, hooks []*hook, phase string) error {
	r.mu.Lock()
	news := false
	for _, h := range hooks {
		run := r.lastRunLocked(h.id, phase)
		if run != nil && run.passed() && run.OnSuccess && run.mayGo() && !run.Doomed {
			run.Doomed, news = true, true
		}
	}
	r.mu.Unlock()
	if !news {
		return nil
	}
	if err := r.save(ctx); err != nil {
		return err
	}
	r.sweepHooks(ctx)
	return nil
}

// sweepHooks deletes the objects of runs that are to go now. One that cannot be deleted
// is tried again at the next occasion; nothing waits for it.
func (r *release) sweepHooks(ctx context.Context) {
	r.mu.Lock()
	var doomed []*HookRun
	for _, run := range r.runs {
		if run.Doomed && !run.Gone {
			doomed = append(doomed, run)
		}
	}
	r.mu.Unlock()
	for _, run := range doomed {
		if ctx.Err() != nil {
			return
		}
		if err := r.deleteRun(ctx, run); err != nil && ctx.Err() == nil {
			r.log.Info("object of a hook not deleted, will be tried again", "object", run.Identity.String(), "run", run.Run, "error", err.Error())
		}
	}
}

// deleteRun deletes the object that a run made, if it is still that one.
func (r *release) deleteRun(ctx context.Context, run *HookRun) error {
	res, err := r.resource(ctx, &object{id: run.Identity, version: run.Version})
	if kindGone(err) {
		r.runGone(run)
		return nil
	}
	if err != nil {
		return err
	}
	for range maxRaces {
		m, err := r.runner.target.look(ctx, res, run.Namespace, run.Name)
		if apierrors.IsNotFound(err) {
			r.runGone(run)
			return nil
		}
		if err != nil {
			return err
		}
		theirs := run.standsBefore(m.UID) || run.UID != "" && run.UID != m.UID || m.Annotations[v1alpha1.AnnotationHookRun] != run.Run
		kept := deleteRules{removal: true}.annotated(m.Annotations) != ""
		if isStatefulSet(run.Identity) && !theirs && !kept {
			live, err := r.runner.target.get(ctx, res, run.Namespace, run.Name)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			kept = deletesClaims(run.Identity, live)
		}
		if theirs || kept || m.Deletion != nil || m.Annotations[v1alpha1.AnnotationOwner] != r.marks.owner {
			r.runGone(run)
			return nil
		}
		err = r.runner.target.remove(ctx, res, run.Namespace, run.Name, m.UID, m.ResourceVersion, metav1.DeletePropagationBackground)
		if err == nil || apierrors.IsNotFound(err) {
			r.runGone(run)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return errRaced
}

// runGone notes that a run has no object any more that concerns us. It is written down
// with whatever is next.
func (r *release) runGone(run *HookRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run.Gone, run.Doomed = true, false
}
