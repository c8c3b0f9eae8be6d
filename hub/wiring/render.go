// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/render"
	contents "kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/tunnel"
)

// renderer is the Release controller's view of the renderer.
type renderer struct{ *render.Renderer }

func (r renderer) InputsHash(pathDigest, namespace string) string {
	return r.ManifestsHash(pathDigest, namespace)
}

// errSnapshot: a job has another snapshot than ours.
var errSnapshot = errors.New("the content is not from our sources")

func (r renderer) Render(ctx context.Context, job release.Job) (release.Rendered, error) {
	content, ok := job.Snapshot.(snapshot)
	if !ok {
		return release.Rendered{}, fmt.Errorf("%w: %T", errSnapshot, job.Snapshot)
	}
	result, err := r.Renderer.Render(ctx, render.Job{
		Tenant: job.Tenant, Snapshot: content.Snapshot, Fresh: true,
		Content: contents.Job{
			Content:   v1alpha1.ReleaseContent{Path: job.Path, Manifests: &v1alpha1.ManifestsContent{}},
			Namespace: job.Namespace, AllowEmpty: job.AllowEmpty,
		},
	})
	if err != nil {
		return release.Rendered{}, err
	}
	out := release.Rendered{Objects: layer(result.Objects), Count: int32(result.Count)} // at most 10,000
	if result.Sealed != nil {
		sealed := layer(*result.Sealed)
		out.Sealed = &sealed
	}
	return out, nil
}

func layer(blob store.Descriptor) tunnel.Layer {
	return tunnel.Layer{Digest: blob.Digest, Size: blob.Size}
}

func (h *hub) startRenderer(context.Context) error {
	made, err := render.New(render.Options{Objects: h.objects, Sealed: h.sealed, MACKey: h.keys.MACKey, Registerer: h.registry})
	if err != nil {
		return fmt.Errorf("make the renderer: %w", err)
	}
	h.renderer = renderer{made}
	h.life.start("render", made.Run)
	return nil
}
