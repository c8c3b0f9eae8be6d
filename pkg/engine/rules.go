// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"weak"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	judged "kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/tunnel"
)

// ruled are the health rules that the objects of a Release are judged by.
type ruled struct {
	layer tunnel.Layer
	facts map[string]string
	// bound is nil while the layer is not here.
	bound *judged.Bound
}

// is says whether an order names these rules.
func (d *ruled) is(order tunnel.Order) bool {
	if d == nil || order.Rules == nil {
		return d == nil && order.Rules == nil
	}
	return d.layer == *order.Rules && maps.Equal(d.facts, order.Facts)
}

// ruleCache has the rules in use by the digest of their layer: Releases share them, and
// they go when no Release uses them any more.
type ruleCache struct {
	turn  chan struct{} // one reads at a time: most want the same
	mu    sync.Mutex
	known map[string]weak.Pointer[judged.Rules] // guarded by mu
}

func newRuleCache() *ruleCache {
	return &ruleCache{turn: make(chan struct{}, 1), known: map[string]weak.Pointer[judged.Rules]{}}
}

func (c *ruleCache) get(digest string) *judged.Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[digest].Value()
}

func (c *ruleCache) put(digest string, rules *judged.Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for old, p := range c.known {
		if p.Value() == nil {
			delete(c.known, old)
		}
	}
	c.known[digest] = weak.Make(rules)
}

// rulesOf gives the rules of a layer that is staged; ErrNotStored when it is not.
func (rn *Runner) rulesOf(ctx context.Context, layer tunnel.Layer) (*judged.Rules, error) {
	select {
	case rn.rules.turn <- struct{}{}:
		defer func() { <-rn.rules.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if rules := rn.rules.get(layer.Digest); rules != nil {
		return rules, nil
	}
	from, err := rn.state.OpenRender(ctx, layer.Digest)
	if err != nil {
		return nil, fmt.Errorf("open layer of health rules: %w", err)
	}
	raw, err := io.ReadAll(newExact(from, layer))
	if err = errors.Join(err, from.Close()); err != nil {
		return nil, fmt.Errorf("read layer of health rules: %w", err)
	}
	rules, err := judged.Parse(raw)
	if err != nil {
		return nil, &renderError{reason: v1alpha1.ReasonRenderRefused, err: err}
	}
	rn.rules.put(layer.Digest, rules)
	return rules, nil
}

// stageRules brings the health rules of an order into State, and judges by them from now
// on. Objects that old or new rules are for are read and judged anew; nothing is written.
func (r *release) stageRules(ctx context.Context, order tunnel.Order) error {
	was := r.ruled.Load()
	if !was.is(order) || (was != nil && was.bound == nil) {
		now, err := r.newRuled(ctx, order)
		if err != nil {
			return fmt.Errorf("health rules: %w", err)
		}
		r.ruled.Store(now)
		r.mu.Lock()
		for _, o := range r.objects {
			if was.mayJudge(o) || now.mayJudge(o) {
				r.unjudged[o] = true
			}
		}
		r.mu.Unlock()
		if was != nil {
			r.runner.tidy()
		}
	}
	if err := r.judgeAnew(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty = r.dirty || r.unruled != ""
	r.unruled = ""
	return nil
}

// failRules ends a sync whose health rules are not to be had. Where its render is the one
// applied in full it stays so, and only health is not known; any other waits for them,
// since its waves are judged by them.
func (r *release) failRules(ctx context.Context, order tunnel.Order, err error) error {
	if ctx.Err() != nil || errors.Is(err, errSuperseded) || errors.Is(err, errStopped) || r.superseded(order) {
		return r.failSync(ctx, order, err, v1alpha1.ReasonProgressing)
	}
	var refused *renderError
	r.mu.Lock()
	r.unruled = clip(explain(err, false), maxMessage)
	applied := r.applied != nil && order.Objects != nil && r.applied.Objects == *order.Objects && r.applied.Namespace == order.Policy.Namespace &&
		r.attempt == nil && !r.roundOpenLocked(order)
	left := r.leftLocked()
	r.dirty = true
	r.mu.Unlock()
	if !applied || errors.As(err, &refused) {
		return r.failSync(ctx, order, err, v1alpha1.ReasonProgressing)
	}
	return r.end(ctx, order, tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied, Message: left}, err)
}

// unruledLocked takes back a health that was found without the rules of the order. Bad
// news stay.
func (r *release) unruledLocked(found tunnel.Finding) tunnel.Finding {
	if r.unruled == "" || r.order.Rules == nil || found.Status != tunnel.True {
		return found
	}
	return tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonUnknown, Message: r.unruled}
}

// mayJudge says whether an object may be judged by these rules.
func (d *ruled) mayJudge(o *object) bool {
	return d != nil && (d.bound == nil || d.bound.Selects(o.id.Group, o.id.Kind))
}

// newRuled stages and reads the rules that an order names; nil: it names none.
func (r *release) newRuled(ctx context.Context, order tunnel.Order) (*ruled, error) {
	if order.Rules == nil {
		return nil, nil //nolint:nilnil // nil are the rules of an order without any
	}
	layer := Render{Objects: *order.Rules}
	r.runner.hold(&layer)
	defer r.runner.unhold(&layer)
	if err := r.stageLayer(ctx, *order.Rules, false, r.uid); err != nil {
		return nil, err
	}
	rules, err := r.runner.rulesOf(ctx, *order.Rules)
	if err != nil {
		return nil, err
	}
	return &ruled{layer: *order.Rules, facts: order.Facts, bound: rules.Bind(order.Facts)}, nil
}

// rulesInUseLocked are those that a restart could not know of the order.
func (r *release) rulesInUseLocked() *Rules {
	d := r.ruled.Load()
	switch {
	case r.order.Sequence == 0, d.is(r.order):
		return nil
	case d == nil:
		return &Rules{}
	}
	return &Rules{Layer: &d.layer, Facts: d.facts}
}

// restoreRuled sets what the objects were judged by. restoreRules reads it.
func (r *release) restoreRuled(record *Record, order tunnel.Order) {
	used := &Rules{Layer: order.Rules, Facts: order.Facts}
	if record.Rules != nil {
		used = record.Rules
	}
	if used.Layer != nil {
		r.ruled.Store(&ruled{layer: *used.Layer, facts: used.Facts})
	}
}

// restoreRules reads the rules of the order that was read back. Where their layer was
// lost the order is carried out again, which fetches it.
func (r *release) restoreRules(ctx context.Context) error {
	was := r.ruled.Load()
	if was == nil || was.bound != nil {
		return nil
	}
	rules, err := r.runner.rulesOf(ctx, was.layer)
	var refused *renderError
	switch {
	case errors.Is(err, ErrNotStored), errors.As(err, &refused):
		r.log.Info("health rules of the order are not kept, they are fetched again", "digest", was.layer.Digest)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.handled > 0 && !r.done {
			r.handled, r.settled = 0, false
		}
		return nil
	case err != nil:
		return err
	}
	r.ruled.Store(&ruled{layer: was.layer, facts: was.facts, bound: rules.Bind(was.facts)})
	return nil
}

// judgeAnew reads the objects that were not judged by the rules in use, and judges them.
// They are read as they are watched, by the Runner's own account.
func (r *release) judgeAnew(ctx context.Context) error {
	r.mu.Lock()
	todo := slices.Collect(maps.Keys(r.unjudged))
	r.mu.Unlock()
	slices.SortFunc(todo, func(a, b *object) int { return int(a.line - b.line) })
	group, gctx := errgroup.WithContext(asOurselves(ctx))
	group.SetLimit(maxParallel)
	for _, o := range todo {
		group.Go(func() error { return r.lookAgain(gctx, o) })
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return errStopped
		}
		return fmt.Errorf("judge by new health rules: %w", err)
	}
	return nil
}

// lookAgain reads one object and takes it in.
func (r *release) lookAgain(ctx context.Context, o *object) error {
	r.mu.Lock()
	res, there := o.res, o.seen && !o.missing && r.objects[o.id] == o
	r.mu.Unlock()
	if there && res != nil { // any other is judged when it is seen
		live, err := r.runner.target.get(ctx, *res, o.id.Namespace, o.id.Name)
		switch {
		case apierrors.IsNotFound(err): // its watch says so
		case err != nil:
			return fmt.Errorf("read %s: %w", o.id, err)
		default:
			r.observe(o, live)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unjudged, o)
	return nil
}
