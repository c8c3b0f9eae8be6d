// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/report"
)

// look finds out what a render would be made of. What is wrong with the source
// is said in the outcome; an error is returned only when the hub is ending.
func (r *Reconciler) look(ctx context.Context, w *work) error {
	release, note := w.release, w.note
	now := r.Clock.Now()
	asked := w.request.sync + "/" + w.request.force
	askRemote := w.request.any() && note.asked != asked
	w.fresh = note.due.IsZero() || !now.Before(note.due) || note.generation != release.Generation || askRemote
	if w.fresh {
		note.due = now.Add(interval(release))
	}
	source := release.Spec.Source
	object, ok := r.Cache.Source(source.Kind, types.NamespacedName{Namespace: release.Namespace, Name: source.Name})
	if !ok {
		w.fail(corev1alpha1.ReasonSourceNotFound, fmt.Sprintf("there is no %s %q", source.Kind, source.Name))
		return nil
	}
	var maxAge time.Duration = anyAge
	switch {
	case askRemote:
		maxAge = 0
	case w.fresh:
		maxAge = object.SourceInterval() + revisionSlack
	}
	revision, err := r.Sources.Resolve(ctx, object, source.Revision, maxAge)
	if err != nil {
		// Asked again until there is an answer: an old one would be no news.
		note.due = time.Time{}
		return w.failBy(ctx, err, corev1alpha1.ReasonFetchFailed)
	}
	w.revision = revision
	if askRemote {
		note.asked = asked
	}
	return r.hash(ctx, w, object)
}

// hash finds the hash of the inputs, without a look at the content where it is
// known already.
func (r *Reconciler) hash(ctx context.Context, w *work, object sourcev1alpha1.Source) error {
	release, note := w.release, w.note
	same := note.generation == release.Generation && note.commit == w.revision.Commit && note.inputs != ""
	switch {
	case w.request.force != "":
	case same && note.failed != nil && !w.fresh:
		// The same inputs fail in the same way; they are tried again when it is time.
		w.outcome.Rendered, w.inputs = note.failed, note.inputs
		return nil
	case same && note.failed == nil && note.inputs == release.Status.InputsHash:
		w.inputs = note.inputs
		return nil
	case describes(release, w.revision):
		w.inputs = release.Status.InputsHash
		w.remember()
		return nil
	}
	snapshot, err := r.Sources.Snapshot(ctx, object, w.revision)
	if err != nil {
		return w.failBy(ctx, err, corev1alpha1.ReasonFetchFailed)
	}
	w.snapshot = snapshot
	digest, err := snapshot.PathDigest(contentPath(release))
	if err != nil {
		return w.failBy(ctx, err, corev1alpha1.ReasonPathNotFound)
	}
	w.inputs = r.Renderer.InputsHash(digest, release.Namespace)
	w.remember()
	return nil
}

func (w *work) remember() {
	w.note.generation, w.note.commit, w.note.inputs, w.note.failed = w.release.Generation, w.revision.Commit, w.inputs, nil
}

// describes says whether the stored render was made of this very revision for
// this very generation: then its hash is the one that a look would give.
func describes(release *corev1alpha1.Release, revision Revision) bool {
	status := &release.Status
	if status.InputsHash == "" || status.Adopted != nil || status.SourceRevision != revision.Display {
		return false
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type == corev1alpha1.ConditionRendered {
			return c.Status == metav1.ConditionTrue && c.ObservedGeneration == release.Generation
		}
	}
	return false
}

func contentPath(release *corev1alpha1.Release) string {
	if clean := path.Clean("/" + release.Spec.Content.Path)[1:]; clean != "" {
		return clean
	}
	return "."
}

// failBy says in the outcome what an error of a room means.
func (w *work) failBy(ctx context.Context, err error, fallback string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("look at the source of %s: %w", w.key, err)
	}
	reason := reasonOf(err, fallback)
	switch reason {
	case corev1alpha1.ReasonFetchFailed, corev1alpha1.ReasonStoreFailed, corev1alpha1.ReasonNoHostCluster:
		w.again = true
	}
	w.fail(reason, err.Error())
	logr.FromContextOrDiscard(ctx).V(1).Info("Release cannot be rendered", "reason", reason, "cause", err.Error())
	return nil
}

// reasonOf maps the words of the rooms onto those of the Rendered condition.
func reasonOf(err error, fallback string) string {
	var named controller.Reasoned
	if !errors.As(err, &named) {
		return fallback
	}
	switch reason := named.Reason(); reason {
	case corev1alpha1.ReasonSourceNotFound, corev1alpha1.ReasonSourceNotChecked, corev1alpha1.ReasonFetchFailed,
		corev1alpha1.ReasonPathNotFound, corev1alpha1.ReasonRenderFailed, corev1alpha1.ReasonEmptyRender,
		corev1alpha1.ReasonStoreFailed, corev1alpha1.ReasonNoHostCluster:
		return reason
	case sourcev1alpha1.ReasonNotChecked:
		return corev1alpha1.ReasonSourceNotChecked
	}
	return fallback
}

// render makes the render and says what became of it.
func (r *Reconciler) render(ctx context.Context, w *work) error {
	release := w.release
	if w.snapshot == nil {
		// The hash was known without a look at the content.
		object, ok := r.Cache.Source(release.Spec.Source.Kind, types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.Source.Name})
		if !ok {
			w.fail(corev1alpha1.ReasonSourceNotFound, "the source was deleted")
			return nil
		}
		snapshot, err := r.Sources.Snapshot(ctx, object, w.revision)
		if err != nil {
			return w.failBy(ctx, err, corev1alpha1.ReasonFetchFailed)
		}
		w.snapshot = snapshot
	}
	rendered, err := r.Renderer.Render(ctx, Job{
		Tenant: release.Namespace, Snapshot: w.snapshot, Path: contentPath(release), Namespace: release.Namespace,
		AllowEmpty: release.Spec.SyncPolicy.Prune.AllowEmpty,
	})
	if err == nil && rendered.Count == 0 && !release.Spec.SyncPolicy.Prune.AllowEmpty {
		// Nothing to apply is not taken for an order to delete everything, unless it
		// was said beforehand that it may be.
		w.fail(corev1alpha1.ReasonEmptyRender, "there is nothing to apply; what runs is kept")
		w.note.failed = w.outcome.Rendered
		r.metrics.renders.WithLabelValues("failed").Inc()
		return nil
	}
	if err != nil {
		r.metrics.renders.WithLabelValues("failed").Inc()
		if err := w.failBy(ctx, err, corev1alpha1.ReasonRenderFailed); err != nil {
			return err
		}
		if !w.again {
			w.note.failed = w.outcome.Rendered
		}
		return nil
	}
	r.metrics.renders.WithLabelValues("made").Inc()
	w.rendered = &report.Render{SourceRevision: w.revision.Display, InputsHash: w.inputs, Status: corev1alpha1.RenderStatus{
		Objects: corev1alpha1.LayerReference(rendered.Objects), Count: rendered.Count, Renderer: r.Version,
	}}
	if rendered.Sealed != nil {
		w.rendered.Status.Sealed = corev1alpha1.LayerReference(*rendered.Sealed)
	}
	if old := release.Status.Render; old != nil && old.Objects.Digest == rendered.Objects.Digest && w.request.force == "" {
		// The same objects have the same secrets: the sealed layer, which differs by
		// its salt alone, stays the one that is ordered.
		w.rendered.Status = *old
	}
	return nil
}
