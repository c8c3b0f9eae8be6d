// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// compare shows how an object on the cluster differs from what our apply would make of
// it: one read, one dry run, no write.
func (r *release) compare(ctx context.Context, o *object) ([]tunnel.Difference, error) {
	r.mu.Lock()
	render, line, digest, res := o.render, o.line, o.digest, o.res
	r.mu.Unlock()
	if render == nil || res == nil {
		return nil, ErrNotStored
	}
	var content, masked map[string]any
	var hides map[string]string
	err := r.contents(ctx, render, func(n int32) bool { return n == line }, func(e *manifest.Entry) (_ bool, err error) {
		if e.Digest != digest {
			return false, ErrNotStored
		}
		hides = e.Sealed
		if content, err = e.Object(); err != nil {
			return false, err
		}
		masked, err = decode(e.Raw)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	if content == nil {
		return nil, ErrNotStored
	}
	live, err := r.runner.target.get(ctx, *res, o.id.Namespace, o.id.Name)
	if err != nil {
		return nil, err
	}
	if owner := ownerOf(live); owner != "" && owner != r.marks.owner {
		return nil, r.runner.ownedByOther(owner)
	}
	content, t, err := r.shapeLive(ctx, o, content, live)
	if err != nil {
		return nil, err
	}
	body, err := r.marks.body(content, o.id, precondition{uid: metaText(live, "uid"), resourceVersion: metaText(live, "resourceVersion")})
	if err != nil {
		return nil, err
	}
	var differ []change
	want, _, err := r.runner.target.apply(ctx, *res, o.id.Namespace, o.id.Name, body, true, true)
	if err == nil {
		differ = changes(live, want, t)
	} else if want, differ, _, err = r.mendLive(ctx, o, *res, content, live, t, err); err != nil {
		return nil, hiding(err, hides)
	}
	secret := isSecret(o.id)
	var found []tunnel.Difference
	for _, c := range differ {
		found = append(found, c.shown(live, want, secret || sealedAt(masked, c.keys)))
	}
	return found, nil
}

// shown writes a change for people. What hides is masked, whatever it is now.
func (c change) shown(live, want map[string]any, hides bool) tunnel.Difference {
	path := c.path
	if hides {
		path = displayPath(withoutValues(c.keys))
	}
	return tunnel.Difference{Path: path, Manager: c.managed, Wanted: valueAt(want, c.keys, hides), Live: valueAt(live, c.keys, hides)}
}

// withoutValues masks the members of sets, which are values themselves.
func withoutValues(keys []string) []string {
	out := slices.Clone(keys)
	for i, key := range out {
		if strings.HasPrefix(key, "v:") {
			out[i] = "v:" + tunnel.Masked
		}
	}
	return out
}

func valueAt(object map[string]any, keys []string, hides bool) string {
	value, there := follow(object, keys)
	if !there {
		return ""
	}
	if hides {
		return tunnel.Masked
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return tunnel.Masked // it came as JSON, so this cannot be
	}
	return clip(string(raw), tunnel.MaxLiveValue)
}

// sealedMark is how the render, as it is shown, begins a value that was sealed.
const sealedMark = "<sealed:"

// sealedAt says whether a value of the render, as it is shown, is or holds one that was
// sealed. A path that the render does not have counts as one: the server made it out of
// something, and nobody knows of what.
func sealedAt(masked map[string]any, keys []string) bool {
	value := any(masked)
	for _, key := range keys {
		if text, ok := value.(string); ok {
			return strings.HasPrefix(text, sealedMark)
		}
		child, there := step(value, key)
		if !there {
			return true
		}
		value = child
	}
	return holdsSealed(value)
}

func holdsSealed(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.HasPrefix(v, sealedMark)
	case []any:
		for _, item := range v {
			if holdsSealed(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if holdsSealed(item) {
				return true
			}
		}
	}
	return false
}
