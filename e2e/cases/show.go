// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// seen is an object that an inventory or a live step named once, on one cluster.
type seen struct {
	cube            *cube
	gvk             schema.GroupVersionKind
	namespace, name string
	// uid it had when it was first seen, and the step of that.
	uid, step string
	// release whose inventory has it now; empty for others'.
	release string
}

func (s *seen) String() string {
	kind := s.gvk.Kind
	if s.gvk.Group != "" {
		kind += "." + s.gvk.Group
	}
	if s.namespace == "" {
		return kind + " " + s.name
	}
	return kind + " " + s.namespace + "/" + s.name
}

// see remembers an object.
func (p *Player) see(t *target, gvk schema.GroupVersionKind, namespace, name, uid, step string) *seen {
	for _, s := range p.seen {
		if s.cube == t.cube && s.gvk.GroupKind() == gvk.GroupKind() && s.namespace == namespace && s.name == name {
			if s.uid == "" {
				s.uid, s.step = uid, step
			}
			return s
		}
	}
	s := &seen{cube: t.cube, gvk: gvk, namespace: namespace, name: name, uid: uid, step: step}
	p.seen = append(p.seen, s)
	return s
}

// inventory of a Release, nil when there is none.
func (p *Player) inventory(ctx context.Context, t *target, r *release) (*corev1alpha1.ReleaseInventory, error) {
	u, err := p.world.Hub.Plane.Dynamic().Resource(install.Inventories).Namespace(t.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	return harness.As[corev1alpha1.ReleaseInventory](u)
}

// remember notes what a Release's inventory has now.
func (p *Player) remember(ctx context.Context, t *target, r *release) error {
	if !p.hubRuns() {
		if r.step == nil {
			return nil
		}
		return p.meet(ctx, t, r.step)
	}
	inventory, err := p.inventory(ctx, t, r)
	if err != nil {
		return err
	}
	for _, s := range p.seen {
		if s.cube == t.cube && s.release == r.name {
			s.release = ""
		}
	}
	step := "?"
	if r.step != nil {
		step = r.step.Name
		if err := p.meet(ctx, t, r.step); err != nil {
			return err
		}
	}
	if inventory == nil {
		return nil
	}
	for _, e := range inventory.Entries {
		gvk := schema.GroupVersionKind{Group: e.Group, Version: e.Version, Kind: e.Kind}
		p.see(t, gvk, e.Namespace, e.Name, e.UID, step).release = r.name
	}
	return nil
}

// meet notes what of a step's documents is there: an inventory is told when an order is
// carried out, and an order may wait for health for long.
func (p *Player) meet(ctx context.Context, t *target, s *Step) error {
	if s.Do != doRender {
		return nil
	}
	docs, err := p.c.render(s)
	if err != nil {
		return err
	}
	if len(docs) > maxMet || t.cube.answers() != nil {
		return nil
	}
	for _, doc := range docs {
		gvk := doc.gvk()
		if gvk.Kind == "" || gvk.Version == "" || doc.Name() == "" {
			continue
		}
		namespace := doc.Namespace()
		if !t.cube.namespaced(gvk) {
			namespace = ""
		} else if namespace == "" {
			namespace = p.c.Namespace()
		}
		object, err := t.cube.get(ctx, gvk, namespace, doc.Name())
		if err != nil || object == nil {
			continue // a check says what cannot be read
		}
		p.see(t, gvk, namespace, doc.Name(), string(object.GetUID()), s.Name)
	}
	return nil
}

// check waits until all is at rest and prints what there is, and what should be.
func (p *Player) check(ctx context.Context, s *Step) error {
	defer func() {
		p.say("\nexpect (for you to judge):\n")
		for _, statement := range s.Expect {
			p.say("  [ ] %s\n", strings.ReplaceAll(statement, "\n", "\n      "))
		}
	}()
	for _, t := range p.targets {
		if err := p.untilSilent(ctx, t); err != nil {
			return err
		}
	}
	for _, r := range p.releases {
		if err := p.settle(ctx, r); err != nil {
			return err
		}
	}
	for _, t := range p.targets {
		if !p.hubRuns() {
			p.say("\nCluster %s/%s and its Releases: the hub is stopped and cannot be asked\n", t.namespace, t.cluster)
			continue
		}
		if err := p.showCluster(ctx, t); err != nil {
			return err
		}
		for _, r := range p.releases {
			if err := p.showRelease(ctx, t, r); err != nil {
				return err
			}
		}
	}
	cubes := map[*cube]bool{}
	for _, t := range p.targets {
		for _, q := range append(slices.Clone(t.former), t.cube) {
			if cubes[q] {
				continue
			}
			cubes[q] = true
			if err := p.showLive(ctx, q); err != nil {
				return err
			}
			if q.answers() != nil {
				continue // it was said
			}
			if err := p.showOthers(ctx, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// showCluster prints what the hub says of the cluster.
func (p *Player) showCluster(ctx context.Context, t *target) error {
	u, err := p.world.Hub.Plane.Dynamic().Resource(install.Clusters).Namespace(t.namespace).Get(ctx, t.cluster, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.say("\nCluster %s/%s: none\n", t.namespace, t.cluster)
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // names the object
	}
	status, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil {
		return fmt.Errorf("status of Cluster %s: %w", t.cluster, err)
	}
	delete(status, "apiVersions")
	delete(status, "agent")
	p.say("\nCluster %s/%s:\n", t.namespace, t.cluster)
	return p.yaml(tidyTimes(status), "  ")
}

// showRelease prints conditions, the rest of the status, and the inventory.
func (p *Player) showRelease(ctx context.Context, t *target, r *release) error {
	now, err := p.read(ctx, t, r)
	if err != nil {
		return err
	}
	p.say("\nRelease %s/%s on Cluster %s:\n", t.namespace, r.name, t.cluster)
	if now == nil {
		p.say("  none\n")
		return nil
	}
	for _, c := range now.Status.Conditions {
		p.say("  %-9s %-8s %-16s %s\n", c.Type, c.Status, c.Reason, strings.ReplaceAll(c.Message, "\n", "\n"+strings.Repeat(" ", 38)))
	}
	rest := map[string]any{"objects": now.Status.Objects}
	for key, value := range map[string]string{"sourceRevision": now.Status.SourceRevision, "renderRef": now.Status.RenderRef, "appliedRef": now.Status.AppliedRef} {
		rest[key] = value
	}
	rest["sequence"] = now.Status.Sequence
	if len(now.Status.Exceptions) > 0 {
		rest["exceptions"], rest["moreExceptions"] = now.Status.Exceptions, now.Status.MoreExceptions
	}
	if now.Status.LastOperation != nil {
		rest["lastOperation"] = map[string]any{"type": now.Status.LastOperation.Type, "phase": now.Status.LastOperation.Phase, "message": now.Status.LastOperation.Message}
	}
	if now.Status.Adopted != nil {
		rest["adopted"] = now.Status.Adopted
	}
	if now.Status.HeldDeletion != nil {
		rest["heldDeletion"] = now.Status.HeldDeletion
	}
	if err := p.yaml(rest, "  "); err != nil {
		return err
	}
	if !met(now, corev1alpha1.ConditionApplied) && met(now, corev1alpha1.ConditionRendered) {
		if err := p.showRender(ctx, t, r); err != nil {
			return err
		}
	}
	inventory, err := p.inventory(ctx, t, r)
	if err != nil {
		return err
	}
	if inventory == nil {
		p.say("  inventory: none\n")
		return nil
	}
	p.say("  inventory, %d entries, of sequence %d:\n", len(inventory.Entries), inventory.Sequence)
	for _, e := range inventory.Entries {
		s := seen{gvk: schema.GroupVersionKind{Group: e.Group, Version: e.Version, Kind: e.Kind}, namespace: e.Namespace, name: e.Name}
		orphaned := ""
		if e.Orphaned {
			orphaned = " orphaned"
		}
		p.say("  - %s (version %s) uid %s wave %d %s%s\n", &s, e.Version, e.UID, e.Wave, e.Health, orphaned)
	}
	return nil
}

// showLive prints every object seen on a cluster, as it is there now.
func (p *Player) showLive(ctx context.Context, q *cube) error {
	all := slices.DeleteFunc(slices.Clone(p.seen), func(s *seen) bool { return s.cube != q })
	slices.SortFunc(all, func(a, b *seen) int {
		return cmp.Or(cmp.Compare(a.gvk.Group, b.gvk.Group), cmp.Compare(a.gvk.Kind, b.gvk.Kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	p.say("\nlive on %s, %d objects that were ever in an inventory or written by others:\n", q.plane.Name(), len(all))
	if err := q.answers(); err != nil {
		// Part of some cases.
		p.say("# cannot be read: %v\n", err)
		return nil
	}
	looks := map[*seen]*look{}
	for _, s := range all {
		looks[s] = &look{}
	}
	for i := range polls {
		if i > 0 {
			if err := p.pass(ctx, pollGap); err != nil {
				return err
			}
		}
		for _, s := range all {
			l := looks[s]
			if l.object, l.err = q.get(ctx, s.gvk, s.namespace, s.name); l.err == nil && l.object != nil {
				l.versions = append(l.versions, l.object.GetResourceVersion())
			}
		}
	}
	for _, s := range all {
		if err := p.showObject(s, looks[s]); err != nil {
			return err
		}
	}
	return nil
}

// look is what the last of several looks at an object found: it, nothing, or an error.
type look struct {
	object *unstructured.Unstructured
	err    error
	// versions that the object had, of all looks.
	versions []string
}

func (p *Player) showObject(s *seen, l *look) error {
	whose := "in no inventory"
	if s.release != "" {
		whose = "in the inventory of " + s.release
	}
	if l.err != nil {
		p.say("---\n# %s: cannot be read (%s): %v\n", s, whose, l.err)
		return nil
	}
	object, versions := l.object, l.versions
	if object == nil {
		p.say("---\n# %s: GONE (%s; uid was %s at step %s)\n", s, whose, s.uid, s.step)
		return nil
	}
	uid := "same UID since step " + s.step
	if string(object.GetUID()) != s.uid {
		uid = "MADE AGAIN, uid was " + s.uid + " at step " + s.step
	}
	if object.GetDeletionTimestamp() != nil {
		uid += ", BEING DELETED"
	}
	writes := fmt.Sprintf("no write over %d looks", len(versions))
	if len(slices.Compact(slices.Clone(versions))) > 1 {
		writes = "WRITTEN between looks: resourceVersion " + strings.Join(versions, ", ")
	}
	if version := object.GroupVersionKind().Version; s.gvk.Version != "" && version != s.gvk.Version {
		writes += ", read at " + version + " (it was seen at " + s.gvk.Version + ", which is not served)"
	}
	p.say("---\n# %s: %s, %s, %s\n", s, whose, uid, writes)
	content := object.DeepCopy()
	if !p.opts.Full {
		for _, line := range managers(content) {
			p.say("#   managed by %s\n", line)
		}
		content.SetManagedFields(nil)
		content.Object, _ = shorten(content.Object).(map[string]any)
	}
	return p.yaml(content.Object, "")
}

// managers says who wrote an object and at which top-level places.
func managers(u *unstructured.Unstructured) []string {
	var out []string
	for _, e := range u.GetManagedFields() {
		line := fmt.Sprintf("%s (%s", e.Manager, e.Operation)
		if e.Subresource != "" {
			line += " of " + e.Subresource
		}
		line += ")"
		var fields map[string]any
		if e.FieldsV1 != nil && yaml.Unmarshal([]byte(e.FieldsV1.String()), &fields) == nil {
			var keys []string
			for key := range fields {
				keys = append(keys, strings.TrimPrefix(key, "f:"))
			}
			slices.Sort(keys)
			line += ": " + strings.Join(keys, ", ")
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// shorten cuts long texts and says what they are.
func shorten(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = shorten(item)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, shorten(item))
		}
		return out
	case string:
		if len(v) > maxShown {
			return fmt.Sprintf("%s... (%d bytes, sha256 %x)", strings.ToValidUTF8(v[:40], ""), len(v), sha256.Sum256([]byte(v)))
		}
	}
	return value
}

// tidyTimes leaves out of conditions what differs between two runs.
func tidyTimes(status map[string]any) map[string]any {
	conditions, ok := status["conditions"].([]any)
	if !ok {
		return status
	}
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok {
			delete(c, "lastTransitionTime")
			delete(c, "observedGeneration")
		}
	}
	return status
}

func (p *Player) yaml(value any, by string) error {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	text := string(raw)
	if by != "" {
		text = indent(text, by)
	}
	p.say("%s", text)
	return nil
}

// pass lets time go by.
func (p *Player) pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // says all
	case <-time.After(d):
		return nil
	}
}
