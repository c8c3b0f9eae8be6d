// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"io"

	"kumodo.io/convoy/pkg/tunnel"
)

// Held gives the orders that are held of the Releases with these UIDs, as they were
// signed, for a hub that lost them. A Release of which none is held is left out.
func (rn *Runner) Held(uids []string) []tunnel.Signed {
	out := make([]tunnel.Signed, 0, len(uids))
	for _, uid := range uids {
		rn.mu.Lock()
		r := rn.releases[uid]
		rn.mu.Unlock()
		if r == nil {
			continue
		}
		r.mu.Lock()
		if r.order.Sequence > 0 {
			out = append(out, r.signed)
		}
		r.mu.Unlock()
	}
	return out
}

// Layer opens a layer that a Release held here refers to, with its size, for a hub
// that lost it. ErrNotStored for any other, also for what State keeps besides.
func (rn *Runner) Layer(ctx context.Context, digest string) (io.ReadCloser, int64, error) {
	for _, r := range rn.all() {
		size, ok := r.sizeOf(digest)
		if !ok {
			continue
		}
		from, err := rn.state.OpenRender(ctx, digest)
		if err != nil {
			return nil, 0, fmt.Errorf("open layer %s: %w", digest, err)
		}
		return from, size, nil
	}
	return nil, 0, fmt.Errorf("layer %s: %w", digest, ErrNotStored)
}

// sizeOf tells the size of a layer that the Release refers to.
func (r *release) sizeOf(digest string) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return 0, false
	}
	renders := []*Render{r.applied, r.attempt}
	if r.order.Objects != nil {
		renders = append(renders, &Render{Objects: *r.order.Objects, Sealed: r.order.Sealed})
	}
	if r.order.Rules != nil {
		renders = append(renders, &Render{Objects: *r.order.Rules})
	}
	for _, o := range r.objects {
		renders = append(renders, o.render)
	}
	for _, render := range renders {
		switch {
		case render == nil:
		case render.Objects.Digest == digest:
			return render.Objects.Size, true
		case digestOf(render.Sealed) == digest:
			return render.Sealed.Size, true
		}
	}
	return 0, false
}
