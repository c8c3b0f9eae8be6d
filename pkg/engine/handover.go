// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// An object moves from one Release to another of the same namespace of the hub without
// being deleted when both say so: the one has it in its render no longer, the other
// has it in its own. If the new one came first and was refused, the old one lets go of
// the object in place of pruning it; if the old one listed it as orphaned, the new one
// takes it.
//
// What counts is the render of the newest order, not what became of it: the new one may
// be trying again, wait for another Release, be suspended or have given up. While that
// render cannot be read, nothing is deleted that might be in it.

// wants is what the render of an order has.
type wants struct {
	sequence  int64  // of the order
	namespace string // of objects for which none is written
	names     *manifest.Names
}

// has says whether an object may be in the render.
func (w *wants) has(id manifest.Identity) bool { return w.names.Has(id, w.namespace) }

// heir names a Release that wants an object of r and does not have it; empty: none.
// Unknown, by name, is one that may want it.
func (r *release) heir(id manifest.Identity) (name, unknown string) {
	for _, other := range r.siblings() {
		other.mu.Lock()
		open, who := other.openLocked(), other.ref.Namespace+"/"+other.ref.Name
		known := other.wants != nil && other.wants.sequence == other.order.Sequence
		wanted := open && known && other.wants.has(id)
		other.mu.Unlock()
		switch {
		case wanted:
			return who, ""
		case open && !known:
			unknown = who
		}
	}
	return "", unknown
}

// siblings are the other Releases of the same namespace of the hub.
func (r *release) siblings() []*release {
	r.mu.Lock()
	namespace := r.ref.Namespace
	r.mu.Unlock()
	var out []*release
	for _, other := range r.runner.all() {
		if other == r {
			continue
		}
		other.mu.Lock()
		same := other.ref.Namespace == namespace
		other.mu.Unlock()
		if same {
			out = append(out, other)
		}
	}
	return out
}

// openLocked says whether a Release was ordered a render that it has not applied in full.
func (r *release) openLocked() bool {
	return r.order.Verb == tunnel.VerbApply && r.order.Objects != nil && !r.done && (r.applied == nil || r.applied.Objects != *r.order.Objects)
}

// askHeirs reads what other Releases want, where that is not known. It is called before
// anything is deleted, from r's own goroutine. The error says of which Release it could
// not be told, by which nothing that it may want is deleted.
func (r *release) askHeirs(ctx context.Context) error {
	var failures error
	for _, other := range r.siblings() {
		other.mu.Lock()
		order, open := other.order, other.openLocked()
		known := other.wants != nil && other.wants.sequence == order.Sequence
		if !open {
			other.wants = nil
		}
		other.mu.Unlock()
		if !open || known {
			continue
		}
		w, err := r.readWants(ctx, other.uid, order)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("what Release %s/%s has in its render: %w", order.Release.Namespace, order.Release.Name, err))
			continue
		}
		other.mu.Lock()
		if other.order.Sequence == order.Sequence {
			other.wants = w
		}
		other.mu.Unlock()
	}
	return failures
}

// readWants reads which objects the render of another Release's order has.
func (r *release) readWants(ctx context.Context, uid string, order tunnel.Order) (w *wants, err error) {
	render := &Render{Objects: *order.Objects}
	r.runner.hold(render)
	defer r.runner.unhold(render)
	if err := r.stageLayer(ctx, render.Objects, false, uid); err != nil {
		return nil, err
	}
	layer, err := r.runner.state.OpenRender(ctx, render.Objects.Digest)
	if err != nil {
		return nil, fmt.Errorf("open objects layer: %w", err)
	}
	defer func() { err = errors.Join(err, layer.Close()) }()
	names, err := manifest.ReadNames(layer)
	if err != nil {
		return nil, err
	}
	return &wants{sequence: order.Sequence, namespace: order.Policy.Namespace, names: names}, nil
}

// callHeirs has Releases try again that were refused objects of others: one was let go.
func (rn *Runner) callHeirs(from *release) {
	for _, r := range rn.all() {
		if r == from {
			continue
		}
		r.againNow()
	}
}

// orphan says whether a Release lists an object, by its UID, as one that left its
// render and was not pruned.
func (r *release) orphan(id manifest.Identity, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	return o != nil && o.orphaned && uid != "" && o.uid == uid
}
