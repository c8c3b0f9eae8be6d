// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/manifest"
)

// hookPlaces parts the objects of a removal: namespaces that hooks are made in which come
// after the others are deleted, and definitions of their kinds, go when those have run.
func (r *release) hookPlaces(p *plan, all []*object) (first, last []*object) {
	if p == nil || !p.running {
		return all, nil
	}
	hooks := p.hooksOf(phasePostDelete, true)
	for _, o := range all {
		needed := false
		for _, h := range hooks {
			d, brings := p.kinds[groupKind{h.id.Group, h.id.Kind}]
			needed = needed || isNamespace(o.id) && o.id.Name == h.id.Namespace || isDefinition(o.id) && brings && d.digest == o.digest
		}
		if needed {
			last = append(last, o)
		} else {
			first = append(first, o)
		}
	}
	return first, last
}

// hookNamespaces are those that hooks of a plan are made in, with the name of one.
func (p *plan) hookNamespaces() map[string]string {
	if len(p.hooks) == 0 {
		return nil
	}
	out := make(map[string]string, len(p.hooks))
	for _, h := range p.hooks {
		if h.id.Namespace != "" && out[h.id.Namespace] == "" {
			out[h.id.Namespace] = h.called()
		}
	}
	return out
}

// leftByHookError: a hook has made an object that may hold data, and it would go with
// what is to be deleted.
type leftByHookError struct {
	id    manifest.Identity
	phase string
}

func (e *leftByHookError) Error() string {
	return "it holds " + e.id.String() + ", which a " + e.phase + " hook made and which is not deleted"
}

// holds says whether the object of a run is one that nothing but its own policy deletes.
// Jobs and Pods have ended, and hold nothing, but where they are to be kept.
func (run *HookRun) holds() bool { return run.Keep || !run.made() || !isRun(run.Identity) }

// leftByHooks looks whether hooks have left an object of some place that must not go with
// it, as a leftByHookError.
func (r *release) leftByHooks(ctx context.Context, of func(manifest.Identity) bool) error {
	for _, run := range r.standing() {
		if !of(run.Identity) || !run.holds() {
			continue
		}
		there, err := r.stands(ctx, run)
		if err != nil {
			return err
		}
		if there {
			return &leftByHookError{id: run.Identity, phase: run.Phase}
		}
	}
	return nil
}

// standing are the runs whose objects are there, as far as it is known.
func (r *release) standing() []*HookRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*HookRun
	for _, run := range r.runs {
		if run.UID != "" && !run.Gone {
			out = append(out, run)
		}
	}
	return out
}

// stands looks whether the object of a run is still there, and not about to go.
func (r *release) stands(ctx context.Context, run *HookRun) (bool, error) {
	res, err := r.resource(ctx, &object{id: run.Identity, version: run.Version})
	if kindGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m, err := r.runner.target.look(ctx, res, run.Namespace, run.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && m.UID == run.UID && m.Deletion == nil, err
}

// missHooks notes which objects of hooks are no more, so that nothing is told of them: of
// a namespace that went, or that somebody deleted. Of which it cannot be told, it is told
// that it is left: nothing waits for that.
func (r *release) missHooks(ctx context.Context) {
	for _, run := range r.standing() {
		there, err := r.stands(ctx, run)
		if err == nil && !there {
			r.runGone(run)
		}
	}
}
