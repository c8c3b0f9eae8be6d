// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// dryRunHooks tries the objects of all hooks, also of those that this order does not
// run: one that the server will not have holds the render back as any object does.
func (r *release) dryRunHooks(ctx context.Context, order tunnel.Order, p *plan) error {
	byLine := make(map[int32]*hook, len(p.hooks))
	for _, h := range p.hooks {
		if h.class != cannotTell {
			byLine[h.line] = h
		}
	}
	if len(byLine) == 0 {
		return nil
	}
	changed := p.changedKinds()
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	err := r.contents(ctx, p.render, func(line int32) bool { return byLine[line] != nil }, func(e *manifest.Entry) (bool, error) {
		h := byLine[int32(e.Line)]
		h.hide(e)
		content, err := e.Object()
		if err != nil {
			return false, err
		}
		group.Go(func() error {
			r.tryHook(gctx, order, p, h, content, changed)
			return nil
		})
		return gctx.Err() == nil, nil
	})
	if waited := group.Wait(); waited != nil {
		return waited
	}
	return err
}

// tryHook makes the dry run of one hook and notes what it says.
func (r *release) tryHook(ctx context.Context, order tunnel.Order, p *plan, h *hook, content map[string]any, changed func(groupKind, definition) bool) {
	err := r.tryHookOnce(ctx, order, p, h, content)
	c := classify(err, p.around(&h.item, order, changed, true))
	if err != nil && c == noNamespace {
		if err = r.ensureNamespace(ctx, h.id.Namespace); err == nil {
			err = r.tryHookOnce(ctx, order, p, h, content)
		}
	}
	if err == nil {
		return
	}
	r.failHook(h, err, classify(err, p.around(&h.item, order, changed, true)))
}

func (r *release) failHook(h *hook, err error, c class) {
	var owned *ownedByOtherError
	var outside *outsideError
	var forbidden *forbiddenError
	var fields *conflictError
	switch {
	case errors.As(err, &owned), errors.Is(err, errForeignHook):
		h.fail(rejected, exceptionOwned, err.Error())
	case errors.As(err, &fields):
		h.fail(conflicting, exceptionConflict, fields.Error())
	case errors.As(err, &outside), errors.As(err, &forbidden):
		h.fail(rejected, exceptionRejected, err.Error())
	case c == deferred:
		h.class = deferred
	case c == cannotTell, c == raced, c == noNamespace:
		h.fail(cannotTell, reasonOf(err), h.explain(err))
	default:
		h.fail(rejected, exceptionRejected, h.explain(err))
	}
}

// tryHookOnce tries a hook under its name, or, where an object of that name would be
// deleted first, under one that is not in use.
func (r *release) tryHookOnce(ctx context.Context, order tunnel.Order, p *plan, h *hook, content map[string]any) error {
	if err := r.placeHook(ctx, order, p, h); err != nil {
		return err
	}
	name, force := h.id.Name, true
	m, err := r.runner.target.look(ctx, *h.res, h.id.Namespace, h.id.Name)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	default:
		ours, err := r.claim(order, h, m.UID, m.Annotations)
		if err != nil {
			return err
		}
		force = ours || order.Policy.ForceConflicts
		if ours && !h.inPlace() {
			name = clip(name, 63-len(probeSuffix)-3) + probeSuffix
		}
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata["name"] = name
	}
	body, err := r.marks.body(content, h.id, precondition{})
	if err != nil {
		return err
	}
	_, _, err = r.runner.target.tryApply(ctx, *h.res, h.id.Namespace, name, body, force)
	return ofHook(err)
}

// placeHook finds where the kind of a hook lives, and whether it may be made there.
func (r *release) placeHook(ctx context.Context, order tunnel.Order, p *plan, h *hook) error {
	if err := r.locate(ctx, order, p, &h.item); err != nil {
		return err
	}
	if err := r.runner.mayReach(&h.item); err != nil {
		return err
	}
	return permit(order, &h.item)
}

// inPlace says whether the hook's object is changed where it is, rather than deleted
// and made anew. A Job or a Pod that has run cannot run again.
func (h *hook) inPlace() bool { return h.keep || !h.before && !isRun(h.id) }

// provide makes what the hooks of a phase cannot be without and only their own render
// brings: definitions and namespaces that do not exist yet. Nothing that exists is
// changed.
func (r *release) provide(ctx context.Context, order tunnel.Order, p *plan, hooks []*hook, changed func(groupKind, definition) bool) error {
	var steps [2][]*item
	for _, it := range p.items {
		if !it.checked || it.found {
			continue
		}
		for _, h := range hooks {
			d, brings := p.kinds[groupKind{h.id.Group, h.id.Kind}]
			switch {
			case isNamespace(it.id) && it.id.Name == h.id.Namespace:
				steps[0] = append(steps[0], it)
			case isDefinition(it.id) && brings && d.digest == it.digest:
				steps[1] = append(steps[1], it)
			default:
				continue
			}
			break
		}
	}
	if len(steps[0])+len(steps[1]) == 0 {
		return nil
	}
	for _, items := range steps {
		for _, it := range items {
			r.intend(p, it)
		}
	}
	r.mu.Lock()
	r.attempt = p.render
	r.mu.Unlock()
	if err := r.save(ctx); err != nil {
		return err
	}
	deadline := r.now().Add(timeoutOf(order))
	for _, items := range steps {
		if err := r.applyStep(ctx, order, p, items, deadline, changed); err != nil {
			return err
		}
		if err := r.waitWave(ctx, order, p, items, deadline, changed); err != nil {
			return err
		}
	}
	return nil
}
