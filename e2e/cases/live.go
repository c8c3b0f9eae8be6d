// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
)

// ways to write, of the key how.
var ways = []string{"create", "update", "ssa", "csa", "merge", "scale", "status", "delete"}

// live writes to the managed clusters as somebody else.
func (p *Player) live(ctx context.Context, s *Step) error {
	manager := s.As
	if manager == "" {
		manager = "someone"
	}
	how := s.How
	if how == "" {
		how = "create"
	}
	copied, err := p.noted(ctx, s)
	if err != nil {
		return err
	}
	var undone []error
	for _, t := range p.targets {
		for _, doc := range s.objects() {
			done, err := p.write(ctx, t, s, doc, manager, how, copied)
			if refusal, ok := asRefusal(err); ok {
				p.say("# %s %s by %s on %s: REFUSED by the server: %s\n", how, doc, manager, t.cluster, refusal)
				continue
			}
			if err != nil {
				err = fmt.Errorf("%s %s by %s: %w", how, doc, manager, err)
				if ctx.Err() != nil || t.cube.answers() == nil {
					return err
				}
				p.say("# NOT DONE, the API server of %s does not answer: %v\n", t.cluster, err)
				undone = append(undone, err)
				continue
			}
			p.say("# %s %s by %s on %s: done\n", how, doc, manager, t.cluster)
			if done != nil {
				p.see(t, done.GroupVersionKind(), done.GetNamespace(), done.GetName(), string(done.GetUID()), s.Name)
			}
		}
		// Drift is seen by a watch and repaired at once: the report follows.
		if p.opts.Manual && p.c.expectsDrift(s) {
			if err := p.untilDrift(ctx, t); err != nil {
				return err
			}
		}
		for _, r := range p.releases {
			if err := p.still(ctx, t, r); err != nil {
				return err
			}
		}
	}
	return errors.Join(undone...)
}

// untilDrift waits until a Release of a target is not in sync: a hub that was told of
// drift waits a moment for its repair before it says so.
func (p *Player) untilDrift(ctx context.Context, t *target) error {
	limit := time.Now().Add(p.opts.Rest)
	for time.Now().Before(limit) {
		for _, r := range p.releases {
			now, err := p.read(ctx, t, r)
			if err != nil {
				return err
			}
			if now != nil && failed(now, corev1alpha1.ConditionInSync) {
				return nil
			}
		}
		if err := p.pass(ctx, pollPause); err != nil {
			return err
		}
	}
	p.say("# %s: no Release is out of sync %s after that\n", t.cluster, p.opts.Rest)
	return nil
}

// objects a live step is about: its documents, or its target alone.
func (s *Step) objects() []*Document {
	if len(s.Docs) > 0 {
		return s.Docs
	}
	return []*Document{s.Target}
}

// asRefusal tells a server's answer from a failure to get one.
func asRefusal(err error) (string, bool) {
	var status apierrors.APIStatus
	var command *harness.CommandError
	switch {
	case err == nil || errors.Is(err, ErrCase):
		return "", false
	case errors.As(err, &status):
		return fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, status.Status().Message), true
	case errors.As(err, &command), noSuchKind(err):
		return err.Error(), true
	default:
		return "", false
	}
}

// write does one write. Errors of the server are returned as they are.
func (p *Player) write(ctx context.Context, t *target, s *Step, doc *Document, manager, how string, copied map[string]map[string]string) (*unstructured.Unstructured, error) {
	client, err := t.cube.as(manager)
	if err != nil {
		return nil, err
	}
	replicas := (*int64)(nil)
	if how == "scale" {
		replicas, doc = s.replicas(doc), s.scaled(doc)
	}
	namespace := doc.Namespace()
	if namespace == "" {
		namespace = p.c.Namespace()
	}
	gvk := doc.gvk()
	if gvk.Group == "" && gvk.Version == "" {
		gvk, err = t.cube.guess(doc.Kind())
		if err != nil {
			return nil, err
		}
	}
	resource, err := t.cube.resource(client, gvk, namespace)
	if err != nil {
		return nil, err
	}
	if how == "delete" {
		return nil, resource.Delete(ctx, doc.Name(), metav1.DeleteOptions{}) //nolint:wrapcheck // told apart by the caller
	}
	if how == "scale" {
		return scale(ctx, resource, doc.Name(), replicas, manager)
	}
	object, err := doc.object()
	if err != nil {
		return nil, err
	}
	for field, pairs := range copied {
		for key, value := range pairs {
			if err := unstructured.SetNestedField(object.Object, value, "metadata", field, key); err != nil {
				return nil, fmt.Errorf("copy %s: %w", field, err)
			}
		}
	}
	if object.GetNamespace() == "" && t.cube.namespaced(gvk) {
		object.SetNamespace(namespace)
	}
	return send(ctx, t, resource, object, doc, manager, how)
}

// scale is what an autoscaler does.
func scale(ctx context.Context, resource dynamic.ResourceInterface, name string, replicas *int64, manager string) (*unstructured.Unstructured, error) {
	if replicas == nil {
		return nil, fmt.Errorf("%w: scale needs replicas", ErrCase)
	}
	body := fmt.Sprintf(`{"spec":{"replicas":%d}}`, *replicas)
	_, err := resource.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}, "scale")
	return nil, err //nolint:wrapcheck // told apart by the caller
}

func send(ctx context.Context, t *target, resource dynamic.ResourceInterface, object *unstructured.Unstructured, doc *Document, manager, how string) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	name := object.GetName()
	switch how {
	case "create":
		return resource.Create(ctx, object, metav1.CreateOptions{FieldManager: manager}) //nolint:wrapcheck // told apart by the caller
	case "update":
		old, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err //nolint:wrapcheck // told apart by the caller
		}
		object.SetResourceVersion(old.GetResourceVersion())
		return resource.Update(ctx, object, metav1.UpdateOptions{FieldManager: manager}) //nolint:wrapcheck // told apart by the caller
	case "ssa":
		force := true
		return resource.Patch(ctx, name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: manager, Force: &force}) //nolint:wrapcheck // told apart by the caller
	case "csa":
		_, err := t.cube.plane.KubectlInput(ctx, string(raw), "apply", "--server-side=false", "--field-manager="+manager, "-f", "-")
		if err != nil {
			return nil, err
		}
		return resource.Get(ctx, name, metav1.GetOptions{}) //nolint:wrapcheck // told apart by the caller
	case "merge":
		return resource.Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager}) //nolint:wrapcheck // told apart by the caller
	case "status":
		body, err := json.Marshal(map[string]any{"status": object.Object["status"]})
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return resource.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager}, "status") //nolint:wrapcheck // told apart by the caller
	default:
		return nil, fmt.Errorf("%w: line %d: how: %q is none of create, update, ssa, csa, merge, scale, status, delete", ErrCase, doc.Line, how)
	}
}

// copyNote is a note that the player carries out.
var copyNote = regexp.MustCompile(`(?i)\badd every label and annotation that live (\w+) (\S+?) carries`)

// noted carries out a live step's note, or shows it.
func (p *Player) noted(ctx context.Context, s *Step) (map[string]map[string]string, error) {
	m := copyNote.FindStringSubmatch(s.Note)
	if m == nil || len(p.targets) == 0 {
		p.tell(s.Note)
		return nil, nil
	}
	gvk, err := p.targets[0].cube.guess(m[1])
	if err != nil {
		return nil, err
	}
	from, err := p.targets[0].cube.get(ctx, gvk, p.c.Namespace(), m[2])
	if err != nil {
		return nil, err
	}
	if from == nil {
		p.say("# note not carried out, there is no %s %s: %s\n", m[1], m[2], s.Note)
		return nil, nil
	}
	p.say("# note, carried out: %s\n", s.Note)
	return map[string]map[string]string{"labels": from.GetLabels(), "annotations": from.GetAnnotations()}, nil
}

// still waits until a Release, after something happened that it did not ask for, has
// not changed for a moment.
func (p *Player) still(ctx context.Context, t *target, r *release) error {
	if r.deleted {
		return nil
	}
	if err := p.pass(ctx, quiet/2); err != nil {
		return err
	}
	return p.rest(ctx, t, r)
}
