// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// leaveNumberLocked notes to whom the number of replicas of an object is left. Those
// that are left to an autoscaler found on the cluster are looked after, and so are those
// whose autoscaler is gone.
func (r *release) leaveNumberLocked(o *object, to scaling) {
	now, before := r.now(), o.view()
	o.scaling = to
	switch {
	case to != scaledBefore:
		o.unscaled = nil
	case o.unscaled == nil: // after a restart the time begins anew
		o.unscaled = &unscaled{until: now.Add(unscaledFor), why: "the number of replicas is kept: no autoscaler scales it any more"}
	}
	r.reviewUnscaledLocked(o, before, now)
	if to != scaledOnCluster && to != scaledBefore {
		delete(r.scaled, o)
		return
	}
	if r.scaled == nil {
		r.scaled = map[*object]bool{}
	}
	if len(r.scaled) == 0 || r.rescaleAt.IsZero() {
		r.rescaleAt = now.Add(rescaleEvery)
	}
	if due := o.unscaled.dueLocked(); due.After(now) && due.Before(r.rescaleAt) {
		r.rescaleAt = due
	}
	r.scaled[o] = true
}

// rescaleDueLocked says when it is looked whether autoscalers are still there; zero: not
// at all.
func (r *release) rescaleDueLocked() time.Time {
	if len(r.scaled) == 0 || r.order.Verb != tunnel.VerbApply || r.done {
		return time.Time{}
	}
	return r.rescaleAt
}

// rescale looks for the autoscalers that numbers of replicas are left to. Where there has
// been none for a while the object is compared anew, with the number of the render. What
// cannot be told stays as it is.
func (r *release) rescale(ctx context.Context) {
	ctx = actAs(ctx, r.healer())
	r.mu.Lock()
	r.rescaleAt = r.now().Add(rescaleEvery)
	byNamespace := map[string][]*object{}
	for o := range r.scaled {
		byNamespace[o.id.Namespace] = append(byNamespace[o.id.Namespace], o)
	}
	r.mu.Unlock()
	for namespace, objects := range byNamespace {
		found, err := r.scaledIn(ctx, nil, namespace, scaled{})
		if err != nil {
			if ctx.Err() == nil {
				r.log.V(1).Info("autoscalers not looked at, will be tried again", "namespace", namespace, "error", err.Error())
			}
			continue
		}
		for _, o := range objects {
			one := scaledBy(o.id)
			if !found.aimed[one] {
				r.freeNumber(ctx, o, found.lost[one.kind])
				continue
			}
			r.mu.Lock()
			if r.objects[o.id] == o {
				r.leaveNumberLocked(o, scaledOnCluster)
			}
			r.mu.Unlock()
		}
	}
}
