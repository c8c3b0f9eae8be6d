// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What is not seen any more is not known. When a watch has failed for watchStale, its
// objects are Unknown, with the reason and since when, until it works again.

// missed takes down that a watch failed, which began at that time.
func (w *watch) missed(began time.Time, err error) {
	if err == nil || errors.Is(err, errExpired) || apierrors.IsNotFound(err) {
		return // a kind that is gone is told of its objects
	}
	if w.failing.IsZero() {
		w.failing = began
	}
	if w.blind || w.runner.clock.Since(w.failing) < watchStale {
		return
	}
	w.blind = true
	why := fmt.Sprintf("not seen any more, since the watch of %s fails: %s", w.res.plural, explain(err, false))
	for _, t := range w.known() {
		t.r.blinded(t.o, clip(why, maxMessage), w.failing)
	}
}

// unserved takes down that the version which a watch follows is not served: its objects
// are gone if their kind is. If another version of it is served they may well be there, and
// are not known until the render follows, or the version is served again.
func (w *watch) unserved(ctx context.Context, objects map[place]tracked, cause error) error {
	w.runner.discovery.forget(w.res.group)
	now, err := w.runner.discovery.findAny(ctx, w.res.group, w.res.kind)
	switch {
	case kindGone(err):
		for _, t := range objects {
			t.r.absent(t.o, 0)
		}
		return cause
	case err != nil:
		return err
	case now.version == w.res.version:
		return cause // it is there again
	}
	if w.failing.IsZero() {
		w.failing = w.runner.clock.Now()
	}
	w.blind = true
	why := notServed(w.res.version, w.res.kind, now.version)
	for _, t := range w.known() {
		t.r.blinded(t.o, why, w.failing)
	}
	return cause
}

// notServed says of an object that it is not seen, since the version that it was applied
// in is not served.
func notServed(version, kind, now string) string {
	return clip(fmt.Sprintf("not seen any more: version %s of %s is not served, the cluster serves it as %s, and the render has to follow", version, kind, now), maxMessage)
}

// sees takes down that a watch works.
func (w *watch) sees() {
	w.failing = time.Time{}
	if !w.blind {
		return
	}
	w.blind = false
	for _, t := range w.known() {
		t.r.blinded(t.o, "", time.Time{})
	}
}

// blinded takes down that an object is not seen any more, or is again.
func (r *release) blinded(o *object, why string, since time.Time) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.id] != o || o.sight != nil {
		return
	}
	before := o.view()
	o.unseen = why
	r.reviewLocked(o, before, now)
	if why != "" {
		o.since = since
	}
}
