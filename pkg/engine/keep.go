// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Annotations on an object, live or as it was applied last, that keep it when it leaves
// the render or its Release goes.
const (
	annotationKeep = "helm.sh/resource-policy"
	keepValue      = "keep"
	pruneNever     = "false" // of v1alpha1.AnnotationPrune
	annotationArgo = "argocd.argoproj.io/sync-options"
)

// Kinds that are kept unless a policy allows them to go.
const (
	kindNamespace  = "Namespace"
	kindDefinition = "CustomResourceDefinition"
	kindClaim      = "PersistentVolumeClaim"
	kindVolume     = "PersistentVolume"
)

// groupSnapshot is that of snapshots of volumes.
const groupSnapshot = "snapshot.storage.k8s.io"

// dataKinds are those with which data goes, and why one of them is kept.
var dataKinds = map[groupKind]string{
	{"", kindClaim}:                          "deleting a claim would delete its data",
	{"", kindVolume}:                         "deleting a volume may lose its data, and cannot be taken back",
	{groupSnapshot, "VolumeSnapshot"}:        "deleting a snapshot would delete its data",
	{groupSnapshot, "VolumeSnapshotContent"}: "deleting a snapshot would delete its data",
}

// holdsMore says whether more than itself may go with an object: others' objects, or data.
func holdsMore(id manifest.Identity) bool {
	return isNamespace(id) || isDefinition(id) || dataKinds[groupKind{id.Group, id.Kind}] != ""
}

// deleteRules say what may be deleted, and how.
type deleteRules struct {
	allowed     []string // of the kinds that are kept otherwise
	propagation metav1.DeletionPropagation
	removal     bool   // the Release goes
	target      string // namespace of a Release that does not go, which is never pruned
	// needed are namespaces that hooks of the render are made in, and by which of them.
	needed map[string]string
}

// rulesOf reads them out of an order. A render of nothing that was permitted takes
// claims along.
func rulesOf(order tunnel.Order, nothing bool) deleteRules {
	rules := deleteRules{
		allowed: order.Policy.Allowed, propagation: metav1.DeletionPropagation(order.Policy.Propagation),
		removal: order.Verb == tunnel.VerbRemove,
	}
	if !rules.removal {
		rules.target = order.Policy.Namespace
	}
	if rules.propagation == "" {
		rules.propagation = metav1.DeletePropagationBackground
	}
	if nothing {
		rules.allowed = append(slices.Clone(rules.allowed), kindClaim)
	}
	return rules
}

// propagates says whether a policy of propagation is one that the server knows.
func propagates(policy string) bool {
	switch metav1.DeletionPropagation(policy) {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		return true
	}
	return false
}

// kept says why an object is not deleted although it left the render, or its Release
// was deleted: with a definition go all objects of its kind, with a claim its data, with
// a namespace all that is in it. A namespace that the Release made is its own.
func (d deleteRules) kept(id manifest.Identity, annotations map[string]string, created bool) string {
	switch {
	case isDefinition(id) && !slices.Contains(d.allowed, kindDefinition):
		return "deleting a definition would delete all objects of its kind"
	case isNamespace(id) && !created && !slices.Contains(d.allowed, kindNamespace):
		return "the namespace was there before it was first applied"
	}
	if why := dataKinds[groupKind{id.Group, id.Kind}]; why != "" && !slices.Contains(d.allowed, id.Kind) {
		return why
	}
	return d.annotated(annotations)
}

// annotated says which annotation keeps an object.
func (d deleteRules) annotated(annotations map[string]string) string {
	switch {
	case strings.EqualFold(annotations[v1alpha1.AnnotationPrune], pruneNever):
		return "annotation " + v1alpha1.AnnotationPrune
	case strings.EqualFold(strings.TrimSpace(annotations[annotationKeep]), keepValue):
		return "annotation " + annotationKeep
	}
	for option := range strings.SplitSeq(annotations[annotationArgo], ",") {
		switch strings.TrimSpace(option) {
		case "Prune=false", "Prune=confirm":
			return "annotation " + annotationArgo
		case "Delete=false", "Delete=confirm":
			if d.removal {
				return "annotation " + annotationArgo
			}
		}
	}
	return ""
}

// keepMarks are what a line of a render must hold for an annotation to keep its object.
var keepMarks = [][]byte{[]byte(v1alpha1.AnnotationPrune), []byte(annotationKeep), []byte(annotationArgo)}

// renderedKeeps says which objects were annotated to be kept when they were applied
// last, though they may not be any more where they live. A render that is not there any
// longer says nothing.
func (r *release) renderedKeeps(ctx context.Context, objects []*object, rules deleteRules) (map[*object]string, error) {
	lines := map[*Render]map[int32]*object{}
	r.mu.Lock()
	for _, o := range objects {
		if o.render == nil {
			continue
		}
		if lines[o.render] == nil {
			lines[o.render] = map[int32]*object{}
		}
		lines[o.render][o.line] = o
	}
	r.mu.Unlock()
	keeps := map[*object]string{}
	for render, wanted := range lines {
		err := r.contents(ctx, render, func(line int32) bool { return wanted[line] != nil }, func(e *manifest.Entry) (bool, error) {
			o := wanted[int32(e.Line)]
			if e.Digest != o.digest || !holdsAny(e.Raw, keepMarks) {
				return true, nil
			}
			content, err := e.Object()
			if err != nil {
				return false, err
			}
			if why := rules.annotated(annotationTexts(content)); why != "" {
				keeps[o] = why
			}
			return true, nil
		})
		if err != nil && !errors.Is(err, ErrNotStored) {
			return nil, fmt.Errorf("read what was applied last: %w", err)
		}
	}
	return keeps, nil
}

// keep lets go of an object that is not deleted, and says why. It is done with when our
// marks are off it.
func (r *release) keep(ctx context.Context, o *object, why string) (gone bool, err error) {
	if err := r.unmark(ctx, o); err != nil {
		return false, err
	}
	r.log.Info("object kept", "object", o.id.String(), "why", why)
	r.mu.Lock()
	r.leaveLocked(fmt.Sprintf("kept %s: %s", o.id, why))
	r.dropLocked(o)
	r.mu.Unlock()
	r.runner.callHeirs(r)
	return true, nil
}

// leaveLocked notes what was left behind.
func (r *release) leaveLocked(what string) {
	if len(r.leftBehind) < maxLeft {
		r.leftBehind = append(r.leftBehind, clip(what, maxMessage-20))
	} else {
		r.alsoLeft++
	}
}

// leftLocked tells what was kept although it should have gone: each, as long as a message
// has room, and of the others how many there are.
func (r *release) leftLocked() string {
	all := slices.Sorted(slices.Values(r.leftBehind))
	out, told := "", 0
	for _, what := range all {
		if told > 0 && len(out)+len("; ")+len(what) > maxMessage-20 {
			break
		}
		if told > 0 {
			out += "; "
		}
		out += what
		told++
	}
	if more := len(all) - told + r.alsoLeft; more > 0 {
		out += fmt.Sprintf(" (and %d more)", more)
	}
	return out
}

func isNamespace(id manifest.Identity) bool { return id.Group == "" && id.Kind == kindNamespace }

func isClaim(id manifest.Identity) bool { return id.Group == "" && id.Kind == kindClaim }

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
		if !r.mine(uid, m) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": m.UID, "resourceVersion": m.ResourceVersion,
			"labels":      map[string]any{v1alpha1.LabelManaged: nil},
			"annotations": map[string]any{v1alpha1.AnnotationOwner: nil, v1alpha1.AnnotationHookRun: nil},
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

// mine says whether the object seen is the one that we applied, and still ours. One of
// another UID is, if it carries our mark and was made by our own apply: a repair made it
// again, and the engine ended before that was written down.
func (r *release) mine(uid string, m meta) bool {
	return m.Annotations[v1alpha1.AnnotationOwner] == r.marks.owner && (uid == "" || m.UID == uid || m.applied())
}
