// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"net/url"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/report"
)

// render makes the render and says what became of it.
func (r *Reconciler) render(ctx context.Context, w *work) error {
	release := w.release
	if w.snapshot == nil {
		// The hash was known without a look at the content.
		snapshot, err := r.Sources.Snapshot(ctx, w.want, w.revision)
		if err != nil {
			return w.failBy(ctx, err, corev1alpha1.ReasonFetchFailed)
		}
		w.snapshot = snapshot
		if w.job, err = r.job(ctx, w); err != nil {
			return w.failBy(ctx, err, corev1alpha1.ReasonRenderFailed)
		}
	}
	rendered, err := r.Renderer.Render(ctx, w.job)
	if err == nil && rendered.Count == rendered.Hooks && !release.Spec.SyncPolicy.Prune.AllowEmpty {
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
	result := "made"
	if rendered.Shared {
		result = "shared"
	}
	r.metrics.renders.WithLabelValues(result).Inc()
	w.inputs, w.note.inputs = rendered.InputsHash, rendered.InputsHash
	w.rendered = &report.Render{SourceRevision: w.revision.Display, InputsHash: rendered.InputsHash, Status: r.described(w, rendered)}
	if old := release.Status.Render; old != nil && old.Objects.Digest == rendered.Objects.Digest && w.request.force == "" {
		// The same objects have the same secrets: the sealed layer, which differs by
		// its salt alone, stays the one that is ordered.
		w.rendered.Status.Objects, w.rendered.Status.Sealed, w.rendered.Status.Count = old.Objects, old.Sealed, old.Count
	}
	return nil
}

// described is a render as the status shows it.
func (r *Reconciler) described(w *work, rendered render.Result) corev1alpha1.RenderStatus {
	status := corev1alpha1.RenderStatus{
		Objects:         corev1alpha1.LayerReference{Digest: rendered.Objects.Digest, Size: rendered.Objects.Size},
		Count:           int32(rendered.Count), // at most 10,000
		Hooks:           int32(rendered.Hooks), // of these
		TargetNamespace: targetNamespace(w.release), Reads: rendered.Reads, Warnings: rendered.Warnings,
		Renderer: r.Version, Provenance: r.provenance(w, rendered),
	}
	if rendered.Sealed != nil {
		status.Sealed = corev1alpha1.LayerReference{Digest: rendered.Sealed.Digest, Size: rendered.Sealed.Size}
	}
	return status
}

// warned is what a Rendered condition adds of the warnings of a render, the first in words.
func warned(warnings []string) string {
	switch len(warnings) {
	case 0:
		return ""
	case 1:
		return "; warning: " + warnings[0]
	}
	return fmt.Sprintf("; %d warnings (status.render.warnings): %s", len(warnings), warnings[0])
}

// provenance says what a render was made of.
func (r *Reconciler) provenance(w *work, rendered render.Result) *corev1alpha1.Provenance {
	return &corev1alpha1.Provenance{
		URL:   withoutCredentials(w.want.Object.SourceURL()),
		Chart: rendered.Chart, ChartVersion: rendered.ChartVersion, AppVersion: rendered.AppVersion,
		Signer: w.revision.Signer, Renderer: r.Version,
	}
}

// withoutCredentials is a URL that can be shown. One that cannot be read is not shown.
func withoutCredentials(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		u.User = nil
	}
	if u.User != nil {
		u.User = url.User(u.User.Username()) // of ssh the user says where, not who
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
