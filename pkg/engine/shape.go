// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/manifest"
)

// rules are what the newest order leaves to others.
func (r *release) rules() ignoreRules {
	if rules := r.ignores.Load(); rules != nil {
		return *rules
	}
	return nil
}

// sparedOf says what of a live object is left to others, as far as it is known.
func (r *release) sparedOf(o *object, live map[string]any) spared {
	t := r.rules().of(o.id, live)
	r.mu.Lock()
	left := o.scaling
	r.mu.Unlock()
	return t.with(left)
}

// sparedNow says what of a live object an apply of its content has to leave to others.
func (r *release) sparedNow(id manifest.Identity, content, live map[string]any, left scaling) spared {
	t := r.rules().of(id, live)
	t.pointers = append(t.pointers[:len(t.pointers):len(t.pointers)], placesOf(id, content, live)...)
	return t.with(left)
}

// with leaves the number of replicas too, if it is somebody's.
func (t spared) with(left scaling) spared {
	if left != scaledByRender {
		t.pointers = append(t.pointers[:len(t.pointers):len(t.pointers)], replicas)
	}
	return t
}

// mayLeave says whether anything of an object may be left to others, so that what is
// there has to be known before it is applied.
func (r *release) mayLeave(id manifest.Identity, content map[string]any) bool {
	return r.rules().concern(id) || scalable(id, content) || holdsPlaces(id, content)
}

// hasApplied says whether an object was applied by us before.
func (r *release) hasApplied(id manifest.Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	return o != nil && o.applied
}

// shape looks at an object and gives the content that leaves alone what is left to
// others. content itself is not changed. An object that is made now is made whole.
func (r *release) shape(ctx context.Context, p *plan, it *item, content map[string]any) (map[string]any, error) {
	live, err := r.look(ctx, it)
	if err != nil {
		return nil, err
	}
	it.shaped = true
	if live == nil {
		it.scaling = firstScaling(p, it.id, content)
		return content, nil
	}
	before := scaledByRender
	r.mu.Lock()
	if o := r.objects[it.id]; o != nil {
		before = o.scaling
	}
	r.mu.Unlock()
	if it.scaling, err = r.scalingOf(ctx, p, it.id, before, content, live); err != nil {
		return nil, err
	}
	t := r.sparedNow(it.id, content, live, it.scaling)
	if it.plain = t.none(); it.plain {
		return content, nil
	}
	return t.sparing(content, live), nil
}

// sparing is leave on a copy.
func (t spared) sparing(content, live map[string]any) map[string]any {
	out, ok := clone(content).(map[string]any)
	if !ok {
		return content // it is a map, so this cannot be
	}
	t.leave(out, live)
	return out
}

// firstScaling says to whom the number of an object is left that is made now.
func firstScaling(p *plan, id manifest.Identity, content map[string]any) scaling {
	_, said := replicasOf(content)
	switch {
	case p.scales(id):
		return scaledInRender
	case !said && scalable(id, content):
		return scaledUnsaid
	}
	return scaledByRender
}

// moved says whether the number of an object, of which nothing else changed, may have
// to be left to somebody else than before.
func (p *plan) moved(o *object) bool {
	return o.scaling == scaledOnCluster || o.scaling == scaledBefore || (o.scaling == scaledInRender) != p.scales(o.id)
}

// look is lookAt, and gives the object; nil when there is none.
func (r *release) look(ctx context.Context, it *item) (map[string]any, error) {
	live, err := r.runner.target.get(ctx, *it.res, it.id.Namespace, it.id.Name)
	if apierrors.IsNotFound(err) {
		it.checked, it.found, it.uid, it.rv = true, false, "", ""
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, r.recognize(it, live)
}

// shapeLive is shape for an object that has drifted, as it was read. It takes down to
// whom its number of replicas is left now.
func (r *release) shapeLive(ctx context.Context, o *object, content, live map[string]any) (map[string]any, spared, error) {
	r.mu.Lock()
	before := o.scaling
	r.mu.Unlock()
	left, err := r.scalingOf(ctx, nil, o.id, before, content, live)
	if err != nil {
		return nil, spared{}, err
	}
	r.mu.Lock()
	r.leaveNumberLocked(o, left)
	r.mu.Unlock()
	t := r.sparedNow(o.id, content, live, left)
	if t.none() {
		return content, t, nil
	}
	return t.sparing(content, live), t, nil
}

// carryNumber puts the number of replicas that an object has into its content, if it is
// left to others: the object is deleted, and what is made in its place has to have it.
func (r *release) carryNumber(ctx context.Context, p *plan, it *item, content map[string]any) error {
	if !scalable(it.id, content) {
		return nil
	}
	live, err := r.look(ctx, it)
	if err != nil || live == nil {
		return err
	}
	r.mu.Lock()
	before := scaledByRender
	if o := r.objects[it.id]; o != nil {
		before = o.scaling
	}
	r.mu.Unlock()
	left, err := r.scalingOf(ctx, p, it.id, before, content, live)
	if err != nil || left == scaledByRender {
		return err
	}
	spec, ok := content["spec"].(map[string]any)
	if n, there := replicasOf(live); ok && there {
		spec["replicas"] = n
	}
	return nil
}
