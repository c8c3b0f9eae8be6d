// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// annotationKeep on a live object keeps it when it leaves the render.
const (
	annotationKeep = "helm.sh/resource-policy"
	keepValue      = "keep"
)

// kept says why an object is not deleted although it left the render, or its
// Release was: a definition would take everybody's objects with it, a namespace that
// was there before us too, and with a claim goes data that no render brings back:
// claims have to be allowed to go.
func kept(o *object, m meta, created, claims bool) string {
	switch {
	case isDefinition(o.id):
		return "deleting a definition would delete all objects of its kind"
	case isNamespace(o.id) && !created:
		return "the namespace was there before it was first applied"
	case o.id.Group == "" && o.id.Kind == "PersistentVolumeClaim" && !claims:
		return "deleting a claim would delete its data"
	case m.Annotations[annotationKeep] == keepValue:
		return "annotation " + annotationKeep
	}
	return ""
}

// keep lets go of an object that is not deleted, and says why.
func (r *release) keep(ctx context.Context, o *object, why string) error {
	if err := r.unmark(ctx, o); err != nil {
		return err
	}
	r.log.Info("object kept", "object", o.id.String(), "why", why)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leftBehind == "" {
		r.leftBehind = clip(fmt.Sprintf("kept %s: %s", o.id, why), maxMessage-20)
	} else {
		r.alsoLeft++
	}
	r.dropLocked(o)
	return nil
}

// leftLocked tells what was kept although it should have gone.
func (r *release) leftLocked() string {
	if r.alsoLeft > 0 {
		return fmt.Sprintf("%s (and %d more)", r.leftBehind, r.alsoLeft)
	}
	return r.leftBehind
}

func isNamespace(id manifest.Identity) bool { return id.Group == "" && id.Kind == "Namespace" }

// unmark takes our label and annotation off an object, if it is the one that we
// applied and still ours. Its fields stay as they are.
func (r *release) unmark(ctx context.Context, o *object) error {
	res, err := r.resource(ctx, o)
	if err != nil {
		if kindGone(err) {
			return nil
		}
		return err
	}
	for range maxRaces {
		m, err := r.runner.target.look(ctx, res, o.id.Namespace, o.id.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		uid := o.uid
		r.mu.Unlock()
		if (uid != "" && m.UID != uid) || m.Annotations[v1alpha1.AnnotationOwner] != r.marks.owner {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": m.UID, "resourceVersion": m.ResourceVersion,
			"labels":      map[string]any{v1alpha1.LabelManaged: nil},
			"annotations": map[string]any{v1alpha1.AnnotationOwner: nil},
		}})
		if err != nil {
			return fmt.Errorf("encode patch: %w", err)
		}
		_, err = r.runner.target.patch(ctx, res, o.id.Namespace, o.id.Name, typeMerge, patch)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return errRaced
}
