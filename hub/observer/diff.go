// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// diffStored says how what runs differs from what was applied, and how that differs from
// the current render.
func (s *Server) diffStored(ctx context.Context, r *request) (any, error) {
	release, leave, err := s.question(ctx, r)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := newDiff(release)
	out.RenderRef = release.Status.RenderRef
	d := &drift{}
	end, observed := s.live(ctx, release, tunnel.LiveDiff, d.add)
	out.Observation = observed
	if observed.Live {
		out.Drift = d.objects
		if d.more { // all that was sent has something, so what was not may, too
			out.MoreDrift = end.Left
		}
	} else {
		out.Drift = lastDrift(release)
	}
	if out.RenderRef != "" && out.RenderRef != out.AppliedRef {
		if err := s.pending(ctx, out); err != nil {
			return nil, err
		}
	}
	return out.settled(), nil
}

// diffUnsaved says how what was applied differs from what a Release would render to.
func (s *Server) diffUnsaved(ctx context.Context, r *request) (any, error) {
	unsaved, err := unsavedOf(r)
	if err != nil {
		return nil, err
	}
	result, err := s.render(ctx, unsaved, "")
	if err != nil {
		return nil, err
	}
	release, stored := s.Releases.Release(r.key)
	if !stored {
		release = unsaved.DeepCopy()
		release.Status = v1alpha1.ReleaseStatus{}
	}
	out := newDiff(release)
	out.RenderRef = result.Digest
	out.Observation.Message = "what runs is not compared with what a file says: that is the diff of the Release by its name"
	if out.RenderRef != out.AppliedRef {
		if err := s.pending(ctx, out); err != nil {
			return nil, err
		}
	}
	return out.settled(), nil
}

// differences is the answer while it is made.
type differences struct{ *v1alpha1.ReleaseDiff }

func newDiff(release *v1alpha1.Release) differences {
	return differences{&v1alpha1.ReleaseDiff{TypeMeta: kindOf("ReleaseDiff"), ObjectMeta: metaOf(release), AppliedRef: release.Status.AppliedRef}}
}

func (d differences) settled() *v1alpha1.ReleaseDiff {
	d.Different = len(d.Pending) > 0 || d.PendingProblem != "" || d.MoreDrift > 0
	for i := range d.Drift {
		d.Different = d.Different || d.Drift[i].InSync == string(tunnel.False)
	}
	return d.ReleaseDiff
}

// drift collects what the agent says.
type drift struct {
	objects []v1alpha1.ObjectDrift
	more    bool
}

func (d *drift) add(o tunnel.LiveObject) {
	if d.more = o.InSync != tunnel.True || len(o.Drift) > 0; !d.more {
		return
	}
	made := v1alpha1.ObjectDrift{
		Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
		InSync: string(o.InSync), Reason: o.Reason, Problem: o.Problem, MoreFields: o.MoreDrift,
	}
	for _, f := range o.Drift {
		made.Fields = append(made.Fields, v1alpha1.FieldDifference{Path: f.Path, Wanted: f.Wanted, Live: f.Live, Manager: f.Manager})
	}
	d.objects = append(d.objects, made)
}

// drifted are the reasons of exceptions of objects that are not as they were applied.
var drifted = map[string]bool{"Drifted": true, "Contested": true}

// lastDrift is what the status says of it: which objects, and no fields.
func lastDrift(release *v1alpha1.Release) []v1alpha1.ObjectDrift {
	var list []v1alpha1.ObjectDrift
	for i := range release.Status.Exceptions {
		if e := &release.Status.Exceptions[i]; drifted[e.Reason] {
			list = append(list, v1alpha1.ObjectDrift{
				Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, InSync: string(tunnel.False), Reason: e.Reason, Problem: e.Message,
			})
		}
	}
	return list
}

// pending compares the applied render with the wanted one, both as they are stored. What cannot be compared is no
// failure: the answer says why.
func (s *Server) pending(ctx context.Context, out differences) error {
	c := &comparison{applied: map[manifest.Identity][]byte{}}
	var err error
	if out.AppliedRef != "" {
		err = s.lines(ctx, out.AppliedRef, c.before)
	}
	if err == nil {
		err = s.lines(ctx, out.RenderRef, c.after)
	}
	if err == nil {
		err = c.removed()
	}
	switch {
	case errors.Is(err, ErrNoRender):
		out.PendingProblem = "a render is not in the store any more: " + err.Error()
	case errors.Is(err, ErrTooLarge):
		out.PendingProblem = err.Error()
	case err != nil:
		return err
	}
	out.Pending = c.changes
	return nil
}

// comparison of two renders, by identity. The applied one is held, of the wanted one a
// line at a time.
type comparison struct {
	applied map[manifest.Identity][]byte
	order   []manifest.Identity
	changes []v1alpha1.ObjectChange
	held    int
	size    int
}

func (c *comparison) before(e *manifest.Entry) error {
	if c.held += len(e.Raw); c.held > maxCompared {
		return fmt.Errorf("%w: the applied render has more than %d MiB, which is not compared here", ErrTooLarge, maxCompared>>20)
	}
	c.applied[e.Identity] = bytes.Clone(e.Raw)
	c.order = append(c.order, e.Identity)
	return nil
}

func (c *comparison) after(e *manifest.Entry) error {
	before, there := c.applied[e.Identity]
	delete(c.applied, e.Identity)
	switch {
	case !there:
		return c.add(v1alpha1.ChangeAdded, nil, bytes.Clone(e.Raw))
	case !bytes.Equal(before, e.Raw):
		return c.add(v1alpha1.ChangeChanged, before, bytes.Clone(e.Raw))
	}
	return nil
}

// removed are what is left of the applied render, in its order.
func (c *comparison) removed() error {
	for _, id := range c.order {
		if before, there := c.applied[id]; there {
			if err := c.add(v1alpha1.ChangeRemoved, before, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) add(change v1alpha1.ChangeType, before, after []byte) error {
	if c.size += len(before) + len(after); c.size > MaxAnswer {
		return fmt.Errorf("%w: the differences have more than %d MiB; these are the first", ErrTooLarge, MaxAnswer>>20)
	}
	made := v1alpha1.ObjectChange{Change: change}
	if before != nil {
		made.Applied = &runtime.RawExtension{Raw: before}
	}
	if after != nil {
		made.Wanted = &runtime.RawExtension{Raw: after}
	}
	c.changes = append(c.changes, made)
	return nil
}
