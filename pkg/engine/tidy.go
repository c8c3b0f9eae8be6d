// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// tidyAfter is how long renders that nothing refers to any more are left.
const tidyAfter = 5 * time.Second

// hold keeps the layers of a render while they are being staged.
func (rn *Runner) hold(render *Render) { rn.count(render, 1) }

// unhold ends hold.
func (rn *Runner) unhold(render *Render) { rn.count(render, -1) }

func (rn *Runner) count(render *Render, by int) {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	for _, digest := range []string{render.Objects.Digest, digestOf(render.Sealed)} {
		if digest == "" {
			continue
		}
		rn.holds[digest] += by
		if rn.holds[digest] == 0 {
			delete(rn.holds, digest)
		}
	}
}

// tidy asks for the deletion of renders that nothing refers to.
func (rn *Runner) tidy() {
	select {
	case rn.tidyNotify <- struct{}{}:
	default: // asked for already
	}
}

// keepTidy deletes renders a while after it was asked to, and once after the start:
// a process that was killed may have left some.
func (rn *Runner) keepTidy(ctx context.Context) error {
	rn.tidy()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-rn.tidyNotify:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rn.clock.After(tidyAfter):
		}
		if err := rn.state.RetainRenders(ctx, rn.keeping()); err != nil && ctx.Err() == nil {
			rn.log.Error(err, "old renders not deleted")
		}
	}
}

// keeping says of layers whether they are to be kept. Most are, and are known from one
// look at all Releases: what stopped to be wanted since has asked to tidy again. The
// others are looked for anew, each at its time: one may be ordered while others are
// deleted.
func (rn *Runner) keeping() func(digest string) bool {
	known := map[string]bool{}
	for _, r := range rn.all() {
		r.mu.Lock()
		for digest := range r.layersLocked() {
			known[digest] = true
		}
		r.mu.Unlock()
	}
	return func(digest string) bool { return known[digest] || rn.wanted(digest) }
}

// wanted says whether anything refers to a layer now.
func (rn *Runner) wanted(digest string) bool {
	rn.mu.Lock()
	held := rn.holds[digest] > 0
	rn.mu.Unlock()
	if held {
		return true
	}
	for _, r := range rn.all() {
		if r.refersTo(digest) {
			return true
		}
	}
	return false
}

func (r *release) refersTo(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for found := range r.layersLocked() {
		if found == digest {
			return true
		}
	}
	return false
}

// layersLocked goes over the digests that a Release refers to. Some come more than once.
func (r *release) layersLocked() iter.Seq[string] {
	return func(yield func(string) bool) {
		if r.done {
			return
		}
		give := func(layer *tunnel.Layer) bool { return layer == nil || yield(layer.Digest) }
		if !give(r.order.Objects) || !give(r.order.Sealed) || !give(r.order.Rules) {
			return
		}
		if ruled := r.ruled.Load(); ruled != nil && !yield(ruled.layer.Digest) {
			return
		}
		var last *Render // most objects are of one
		of := func(render *Render) bool {
			if render == nil || render == last {
				return true
			}
			last = render
			return yield(render.Objects.Digest) && give(render.Sealed)
		}
		if !of(r.applied) || !of(r.attempt) {
			return
		}
		for _, o := range r.objects {
			if !of(o.render) {
				return
			}
		}
	}
}

func sortedSet(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
