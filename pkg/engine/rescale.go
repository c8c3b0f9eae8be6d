// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/tunnel"
)

// leaveNumberLocked notes to whom the number of replicas of an object is left. Those
// that are left to an autoscaler found on the cluster are looked after.
func (r *release) leaveNumberLocked(o *object, to scaling) {
	o.scaling = to
	if to != scaledOnCluster {
		delete(r.scaled, o)
		return
	}
	if r.scaled == nil {
		r.scaled = map[*object]bool{}
	}
	if len(r.scaled) == 0 || r.rescaleAt.IsZero() {
		r.rescaleAt = r.now().Add(rescaleEvery)
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

// rescale looks for the autoscalers that numbers of replicas are left to. Where there is
// none any more the object is compared anew, with its number. What cannot be told stays
// as it is.
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
			if !found[scaled{groupKind{o.id.Group, o.id.Kind}, o.id.Name}] {
				r.takeNumber(ctx, o)
			}
		}
	}
}

// takeNumber has an object compared whose autoscaler is gone. What is found then decides:
// it is looked for once more before a number is written.
func (r *release) takeNumber(ctx context.Context, o *object) {
	r.mu.Lock()
	res, current := o.res, r.objects[o.id] == o
	r.mu.Unlock()
	if res == nil || !current {
		return
	}
	live, err := r.runner.target.get(ctx, *res, o.id.Namespace, o.id.Name)
	if err != nil {
		if !apierrors.IsNotFound(err) && ctx.Err() == nil {
			r.log.V(1).Info("object not read, will be tried again", "object", o.id.String(), "error", err.Error())
		}
		return // gone: a watch says so
	}
	r.log.Info("no autoscaler any more", "object", o.id.String())
	r.mu.Lock()
	r.leaveNumberLocked(o, scaledByRender)
	r.mu.Unlock()
	r.observe(o, live)
}
