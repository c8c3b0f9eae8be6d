// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/manifest"
)

// An autoscaler that is gone, or aims at another object, may be so by mistake, or be made
// anew the next moment; the number of the render may be a tenth of what carries the load.
// So the number stays for unscaledFor, and as long as an autoscaler of the namespace finds
// nothing to scale, since its target may be a slip of the pen. That is told as drift.

// unscaled is kept of an object whose number was left to an autoscaler.
type unscaled struct {
	until time.Time // it stays, at least
	lost  bool      // an autoscaler finds nothing to scale
	why   string
}

// unscale says whether the number of an object that no autoscaler aims at stays as it is,
// scaledBefore. lost names an autoscaler that finds nothing to scale; empty: none.
func (r *release) unscale(id manifest.Identity, wanted, have any, lost string) scaling {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	if o == nil {
		return scaledByRender // it was never left to anybody
	}
	u := unscaled{until: now.Add(unscaledFor), lost: lost != ""}
	if o.unscaled != nil && !u.lost {
		u.until = o.unscaled.until
	}
	if !now.Before(u.until) {
		return scaledByRender
	}
	u.why = fmt.Sprintf("%v replicas are kept, the render says %v: no autoscaler scales it any more", have, wanted)
	if u.lost {
		u.why += ", and " + lost + " finds nothing to scale: aim it right, or take it away"
	}
	before := o.view()
	o.unscaled = &u
	r.reviewUnscaledLocked(o, before, now)
	return scaledBefore
}

// scaledAgainLocked forgets that an object had no autoscaler any more.
func (r *release) scaledAgainLocked(o *object) {
	if o == nil || o.unscaled == nil {
		return
	}
	before := o.view()
	o.unscaled = nil
	r.reviewUnscaledLocked(o, before, r.now())
}

func (r *release) reviewUnscaledLocked(o *object, before view, now time.Time) {
	if r.objects[o.id] == o && o.view() != before {
		r.reviewLocked(o, before, now)
	}
}

// dueLocked says when it is looked at again whether a number stays. One that an
// autoscaler keeps that finds nothing is looked at as those that are found are.
func (u *unscaled) dueLocked() time.Time {
	if u == nil || u.lost {
		return time.Time{}
	}
	return u.until
}

// freeNumber decides about the number of an object that no autoscaler of its namespace
// aims at: it stays for a while, or the object is compared anew, with the number of the
// render. lost names an autoscaler that finds nothing to scale.
func (r *release) freeNumber(ctx context.Context, o *object, lost string) {
	r.mu.Lock()
	res, render, line, digest, current := o.res, o.render, o.line, o.digest, r.objects[o.id] == o
	r.mu.Unlock()
	if res == nil || render == nil || !current {
		return
	}
	live, err := r.runner.target.get(ctx, *res, o.id.Namespace, o.id.Name)
	var content map[string]any
	if err == nil {
		content, err = r.content(ctx, render, line, digest)
	}
	if err != nil {
		if !apierrors.IsNotFound(err) && ctx.Err() == nil {
			r.log.V(1).Info("object not read, will be tried again", "object", o.id.String(), "error", err.Error())
		}
		return // gone: a watch says so
	}
	wanted, said := replicasOf(content)
	have, there := replicasOf(live)
	if said && there && !same(wanted, have) && r.unscale(o.id, wanted, have, lost) == scaledBefore {
		r.mu.Lock()
		r.leaveNumberLocked(o, scaledBefore)
		r.mu.Unlock()
		return
	}
	r.log.Info("no autoscaler any more", "object", o.id.String())
	r.mu.Lock()
	r.leaveNumberLocked(o, scaledByRender)
	r.mu.Unlock()
	r.observe(o, live)
}
