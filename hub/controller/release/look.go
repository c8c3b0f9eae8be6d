// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/source"
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
	object, err := r.source(release)
	if err != nil {
		w.fail(corev1alpha1.ReasonSourceNotFound, err.Error())
		return nil
	}
	var maxAge time.Duration = anyAge
	switch {
	case askRemote:
		maxAge = 0
	case w.fresh:
		maxAge = object.SourceInterval() + revisionSlack
	}
	w.want = wantOf(release, object)
	revision, err := r.Sources.Resolve(ctx, w.want, maxAge)
	if err != nil {
		// Asked again until there is an answer: an old one would be no news.
		note.due = time.Time{}
		return w.failBy(ctx, err, corev1alpha1.ReasonFetchFailed)
	}
	w.revision = revision
	if askRemote {
		note.asked = asked
	}
	return r.hash(ctx, w)
}

// source is the object that a Release names.
func (r *Reconciler) source(release *corev1alpha1.Release) (sourcev1alpha1.Source, error) {
	named := release.Spec.Source
	object, ok := r.Cache.Source(named.Kind, types.NamespacedName{Namespace: release.Namespace, Name: named.Name})
	if !ok {
		return nil, fmt.Errorf("there is no %s %q", named.Kind, named.Name)
	}
	return object, nil
}

// wantOf is what a Release asks of its source.
func wantOf(release *corev1alpha1.Release, object sourcev1alpha1.Source) source.Want {
	want := source.Want{Object: object, Revision: release.Spec.Source.Revision}
	if helm := release.Spec.Content.Helm; helm != nil && helm.Chart != nil {
		want.Chart, want.Version = helm.Chart.Name, helm.Chart.Version
	}
	return want
}

// hash finds the hash of the inputs, without a look at the content where it is
// known already.
func (r *Reconciler) hash(ctx context.Context, w *work) error {
	release, note := w.release, w.note
	same := note.generation == release.Generation && note.revision == w.revision.Key && note.inputs != ""
	switch {
	case w.request.force != "":
	case same && note.failed != nil && !w.fresh:
		// The same inputs fail in the same way; they are tried again when it is time.
		w.outcome.Rendered, w.inputs = note.failed, note.inputs
		return nil
	case same && note.failed == nil && note.inputs == release.Status.InputsHash && (!w.fresh || !worldly(release)):
		w.inputs = note.inputs
		return nil
	case describes(release, w.revision) && (!worldly(release) || !r.known(release)):
		w.inputs = release.Status.InputsHash
		w.remember()
		return nil
	}
	snapshot, err := r.Sources.Snapshot(ctx, w.want, w.revision)
	if err != nil {
		return w.failBy(ctx, err, corev1alpha1.ReasonFetchFailed)
	}
	w.snapshot = snapshot
	if w.job, err = r.job(ctx, w); err != nil {
		// Before there is a hash there is none to remember the failure by.
		return w.failBy(ctx, err, corev1alpha1.ReasonRenderFailed)
	}
	var reads []string
	if release.Status.Render != nil {
		reads = release.Status.Render.Reads
	}
	if w.inputs, err = r.Renderer.InputsHash(ctx, w.job, reads); err != nil {
		return w.failBy(ctx, err, corev1alpha1.ReasonPathNotFound)
	}
	w.remember()
	return nil
}

func (w *work) remember() {
	w.note.generation, w.note.revision, w.note.inputs, w.note.failed = w.release.Generation, w.revision.Key, w.inputs, nil
}

// worldly says whether a render may be made of more than its source and its spec:
// then these being unchanged says nothing.
func worldly(release *corev1alpha1.Release) bool {
	if helm := release.Spec.Content.Helm; helm != nil && len(helm.ValuesFrom) > 0 {
		return true
	}
	for i := range release.Spec.Mutations {
		if from := release.Spec.Mutations[i].From; from != nil && from.Kind != corev1alpha1.ReferenceSource {
			return true
		}
	}
	render := release.Status.Render
	return render != nil && slices.ContainsFunc(render.Reads, func(name string) bool {
		// The source and its images are those of the revision.
		return !strings.HasPrefix(name, facts.Path) && !strings.HasPrefix(name, facts.Image)
	})
}

// known says whether there is a Cluster whose facts could be read.
func (r *Reconciler) known(release *corev1alpha1.Release) bool {
	_, ok := r.Cache.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name})
	return ok
}

// describes says whether the stored render was made of this very revision for
// this very generation: then its hash is the one that a look would give, as far as
// the source and the spec decide about it.
func describes(release *corev1alpha1.Release, revision source.Revision) bool {
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

// failBy says in the outcome what an error of a room means.
func (w *work) failBy(ctx context.Context, err error, fallback string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("look at the source of %s: %w", w.key, err)
	}
	reason := reasonOf(err, fallback)
	switch reason {
	case corev1alpha1.ReasonFetchFailed, corev1alpha1.ReasonStoreFailed, corev1alpha1.ReasonNoHostCluster, corev1alpha1.ReasonValuesNotFound:
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
		corev1alpha1.ReasonStoreFailed, corev1alpha1.ReasonNoHostCluster, corev1alpha1.ReasonValuesNotFound:
		return reason
	case sourcev1alpha1.ReasonNotChecked:
		return corev1alpha1.ReasonSourceNotChecked
	}
	return fallback
}
