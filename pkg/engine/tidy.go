// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"time"
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
		// What is wanted is looked up anew for each digest: a render may be ordered
		// while others are deleted.
		if err := rn.state.RetainRenders(ctx, rn.wanted); err != nil && ctx.Err() == nil {
			rn.log.Error(err, "old renders not deleted")
		}
	}
}

// wanted says whether anything refers to a layer.
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
	if r.done {
		return false
	}
	if r.order.Objects != nil && r.order.Objects.Digest == digest {
		return true
	}
	if digestOf(r.order.Sealed) == digest || digestOf(r.order.Rules) == digest || r.ruled.Load().names(digest) {
		return true
	}
	for _, render := range []*Render{r.applied, r.attempt} {
		if render != nil && (render.Objects.Digest == digest || digestOf(render.Sealed) == digest) {
			return true
		}
	}
	for _, o := range r.objects {
		if o.render != nil && (o.render.Objects.Digest == digest || digestOf(o.render.Sealed) == digest) {
			return true
		}
	}
	return false
}

func sortedSet(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
