// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// makeHook makes the object of a run, or finds the one that it made.
func (r *release) makeHook(ctx context.Context, order tunnel.Order, h *hook, run *HookRun, o *object, content map[string]any, deadline time.Time) error {
	if err := r.letGo(ctx, run, o); err != nil {
		return err
	}
	for range maxRaces {
		live, err := r.runner.target.get(ctx, *h.res, h.id.Namespace, h.id.Name)
		if apierrors.IsNotFound(err) {
			live, err = nil, nil
		}
		if err != nil {
			return err
		}
		if live != nil {
			r.observe(o, live)
		}
		r.mu.Lock()
		found := o.sight.uid != "" && live != nil && metaText(live, "uid") == o.sight.uid
		if run.UID != "" && !found {
			o.sight.gone = true // it is not made twice
		}
		gone := o.sight.gone
		r.mu.Unlock()
		if found || gone {
			return nil
		}
		pre, force := precondition{create: true}, true
		if live != nil {
			annotations := annotationTexts(live)
			ours, err := r.claim(order, h, metaText(live, "uid"), annotations)
			if err != nil {
				return err
			}
			force = ours || order.Policy.ForceConflicts
			// What would take claims along is changed where it is.
			stays := h.inPlace() || !ours || deleteRules{removal: true}.annotated(annotations) != "" || deletesClaims(h.id, live)
			if metaText(live, "deletionTimestamp") != "" || !stays {
				if err := r.makeRoom(ctx, order, h, o, live, deadline); err != nil {
					return err
				}
				continue
			}
			if isRun(h.id) {
				return &brokenHook{why: "what an earlier run left is kept, and cannot run again: delete it, or do not annotate it to be kept"}
			}
			pre = precondition{uid: metaText(live, "uid"), resourceVersion: metaText(live, "resourceVersion")}
			if !ours {
				// Afterwards it carries our marks: that it was there is known by this alone.
				if err := r.goesOnto(ctx, run, pre.uid); err != nil {
					return err
				}
			}
		}
		answer, err := r.applyHook(ctx, order, h, run, content, pre, force)
		if apierrors.IsConflict(err) && len(conflictsOf(err)) == 0 || classify(err, surroundings{}) == raced {
			continue
		}
		if err != nil {
			return ofHook(err)
		}
		r.observe(o, answer)
		return nil
	}
	return errRaced
}

// goesOnto writes down that the object of a run was there before and was not made by a
// hook of this Release, before it is applied.
func (r *release) goesOnto(ctx context.Context, run *HookRun, uid string) error {
	r.mu.Lock()
	known := run.Onto == uid
	run.Onto = uid
	r.mu.Unlock()
	if known {
		return nil
	}
	return r.save(ctx)
}

// ofHook is an error of the apply of a hook's object, with the fields that others
// manage, if those are in its way.
func ofHook(err error) error {
	conflicts := conflictsOf(err)
	if len(conflicts) == 0 {
		return err
	}
	nobody := func(string) bool { return false }
	if fields := unforced(conflicts, nil, nobody); fields != nil {
		return fields
	}
	return err
}

// applyHook sends the object of a run to the server.
func (r *release) applyHook(ctx context.Context, order tunnel.Order, h *hook, run *HookRun, content map[string]any, pre precondition, force bool) (map[string]any, error) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no metadata", h.id)
	}
	if err := put(metadata, "annotations", v1alpha1.AnnotationHookRun, run.Run); err != nil {
		return nil, fmt.Errorf("%s: %w", h.id, err)
	}
	body, err := r.marks.body(content, h.id, pre)
	if err != nil {
		return nil, err
	}
	answer, _, err := r.runner.target.apply(ctx, *h.res, h.id.Namespace, h.id.Name, body, force, false)
	around := surroundings{madeNamespace: h.id.Namespace != "" && h.id.Namespace == order.Policy.Namespace}
	if err != nil && classify(err, around) == noNamespace {
		if err := r.ensureNamespace(ctx, h.id.Namespace); err != nil {
			return nil, err
		}
		answer, _, err = r.runner.target.apply(ctx, *h.res, h.id.Namespace, h.id.Name, body, force, false)
	}
	return answer, err
}

// hookMade writes down which object a run has made; what earlier runs made under its
// name is no more.
func (r *release) hookMade(ctx context.Context, h *hook, run *HookRun, s *sight) error {
	r.mu.Lock()
	news := s.uid != "" && run.UID != s.uid
	if news {
		run.UID, run.Created = s.uid, s.uid != run.Onto
		for _, old := range r.runs {
			if old != run && old.Identity == h.id {
				old.Gone, old.Doomed = true, false
			}
		}
		r.dirty = true
	}
	r.mu.Unlock()
	if !news {
		return nil
	}
	return r.save(ctx)
}

// letGo takes an object out of the inventory that is a hook now. It is not pruned; the
// hook may replace it.
func (r *release) letGo(ctx context.Context, run *HookRun, seen *object) error {
	r.mu.Lock()
	o := r.objects[seen.id]
	if o != nil {
		if o.created {
			run.Former = o.uid
		} else {
			run.Onto = o.uid
		}
		r.dropLocked(o)
		r.runner.track(seen.res, r, seen, true)
	}
	r.mu.Unlock()
	if o == nil {
		return nil
	}
	return r.save(ctx)
}

// letGoAll does so for all hooks of a plan, after what left the render was pruned. Those
// that have not run yet, or never do, must know them again when they do.
func (r *release) letGoAll(p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var formers []Former
	for _, h := range p.hooks {
		if o := r.objects[h.id]; o != nil {
			formers = append(formers, Former{Identity: h.id, UID: o.uid, Created: o.created})
			r.dropLocked(o)
		} else if f := r.formerLocked(h.id); f != nil {
			formers = append(formers, *f)
		}
	}
	r.formers = formers
}
