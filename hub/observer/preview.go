// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// previewStored renders a Release as it is stored.
func (s *Server) previewStored(ctx context.Context, r *request) (any, error) {
	release, ok := s.Releases.Release(r.key)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, r.key)
	}
	return s.preview(ctx, release, r.query.Get("revision"))
}

// previewUnsaved renders a Release that is not stored, or not like that. The API server
// has checked it, and recorded in its status which Secrets may be read for it.
func (s *Server) previewUnsaved(ctx context.Context, r *request) (any, error) {
	release, err := unsavedOf(r)
	if err != nil {
		return nil, err
	}
	return s.preview(ctx, release, "")
}

// unsavedOf reads the Release of a body.
func unsavedOf(r *request) (*v1alpha1.Release, error) {
	release := &v1alpha1.Release{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.body, release); err != nil {
		return nil, fmt.Errorf("%w is no Release: %w", ErrBody, err)
	}
	if release.Namespace != r.key.Namespace || release.Name != r.key.Name {
		return nil, fmt.Errorf("%w is Release %s/%s, not %s", ErrBody, release.Namespace, release.Name, r.key)
	}
	return release, nil
}

// render waits for a place and makes the render.
func (s *Server) render(ctx context.Context, release *v1alpha1.Release, revision string) (Result, error) {
	leave, err := s.previews.enter(ctx, release.Namespace)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	ctx, end := s.previews.begin(ctx)
	defer end()
	result, err := s.Previewer.Preview(ctx, release.DeepCopy(), revision)
	if err != nil && ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return result, err
}

func (s *Server) preview(ctx context.Context, release *v1alpha1.Release, revision string) (*v1alpha1.Preview, error) {
	result, err := s.render(ctx, release, revision)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, object := range result.Objects {
		if size += len(object); size > MaxAnswer {
			return nil, fmt.Errorf("%w: the render has more than %d MiB in %d objects; kubectl convoy render makes it on your machine", ErrTooLarge, MaxAnswer>>20, len(result.Objects))
		}
	}
	out := &v1alpha1.Preview{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Preview"},
		ObjectMeta: metav1.ObjectMeta{Name: release.Name, Namespace: release.Namespace},
		RenderRef:  result.Digest, SourceRevision: result.SourceRevision, TargetNamespace: result.TargetNamespace,
		Provenance: result.Provenance, Reads: result.Reads, Warnings: result.Warnings,
		Count: int32(len(result.Objects)), // at most 10,000
		Hooks: int32(result.Hooks),        // of these
	}
	for _, object := range result.Objects {
		out.Objects = append(out.Objects, runtime.RawExtension{Raw: object})
	}
	return out, nil
}
