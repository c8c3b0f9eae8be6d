// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/resource"
)

// Recorder writes into the status of a Release or Cluster that its deletion was
// held. hub/report is one.
type Recorder = deletion.Recorder

// recording is who records. Until somebody says so, the server itself does.
type recording struct {
	by atomic.Pointer[Recorder]
}

func (r *recording) recorder() Recorder { return *r.by.Load() }

func (r *recording) set(by Recorder) { r.by.Store(&by) }

// RecordHeld sets who writes down what was held, in place of the server itself.
func (s *Server) RecordHeld(by Recorder) { s.recording.set(by) }

// gated is what the gate of deletions looks at, and the recorder that there is
// without another.
type gated struct {
	releases *Releases
	clusters *Clusters
}

// Releases of a namespace, or of one Cluster in it.
func (g gated) Releases(ctx context.Context, namespace, cluster string) ([]*corev1alpha1.Release, error) {
	options := resource.ListOptions{Namespace: namespace}
	if cluster != "" {
		options.Fields = fields.OneTermEqualSelector(scheme.FieldClusterRefName, cluster)
	}
	list, err := g.releases.List(ctx, options)
	if err != nil {
		return nil, err
	}
	out := make([]*corev1alpha1.Release, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// Cluster by name.
func (g gated) Cluster(ctx context.Context, key types.NamespacedName) (*corev1alpha1.Cluster, error) {
	return g.clusters.GetCached(ctx, key)
}

// Held implements Recorder.
func (g gated) Held(ctx context.Context, release types.NamespacedName, uid types.UID, held corev1alpha1.HeldDeletion) error {
	_, err := g.releases.UpdateStatus(ctx, release, uid, func(r *corev1alpha1.Release) error {
		r.Status.HeldDeletion = &held
		return nil
	})
	return err
}

// HeldCluster implements Recorder.
func (g gated) HeldCluster(ctx context.Context, cluster types.NamespacedName, uid types.UID, held corev1alpha1.HeldDeletion) error {
	_, err := g.clusters.UpdateStatus(ctx, cluster, uid, func(c *corev1alpha1.Cluster) error {
		c.Status.HeldDeletion = &held
		return nil
	})
	return err
}
