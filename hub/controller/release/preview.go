// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render"
)

// Previewed is a render that was made to be looked at.
type Previewed struct {
	render.Result
	SourceRevision, TargetNamespace string
	Provenance                      *corev1alpha1.Provenance
}

// Preview renders a Release as it is given, at another revision if one is named, and
// writes nothing. The layers are in the store as those of any render, where nothing
// refers to them: they are collected after a while. Secrets count that
// status.checkedSecrets names. Errors name their reasons as conditions do.
func (r *Reconciler) Preview(ctx context.Context, release *corev1alpha1.Release, revision string) (Previewed, error) {
	if revision != "" {
		release = release.DeepCopy()
		release.Spec.Source.Revision = revision
	}
	object, err := r.source(release)
	if err != nil {
		return Previewed{}, &referenceError{fmt.Errorf("%w: %w", ErrNotThere, err)}
	}
	if _, ok := r.Cache.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}); !ok {
		return Previewed{}, &referenceError{fmt.Errorf("%w: %s", errNoCluster, release.Spec.ClusterRef.Name)}
	}
	w := &work{key: keyOf(release), release: release, want: wantOf(release, object)}
	if w.revision, err = r.Sources.Resolve(ctx, w.want, object.SourceInterval()+revisionSlack); err != nil {
		return Previewed{}, err
	}
	if w.snapshot, err = r.Sources.Snapshot(ctx, w.want, w.revision); err != nil {
		return Previewed{}, err
	}
	if w.job, err = r.job(ctx, w); err != nil {
		return Previewed{}, err
	}
	rendered, err := r.Renderer.Render(ctx, w.job)
	if err != nil {
		return Previewed{}, err
	}
	return Previewed{
		Result: rendered, SourceRevision: w.revision.Display, TargetNamespace: targetNamespace(release),
		Provenance: r.provenance(w, rendered),
	}, nil
}
