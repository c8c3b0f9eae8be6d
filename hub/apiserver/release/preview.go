// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/secret"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// maxRevision bounds the query: the longest ref that a source may name.
const maxRevision = 255

// Previews render without a trace.
type Previews interface {
	Preview(ctx context.Context, namespace, name, revision string, unsaved *v1alpha1.Release) (*v1alpha1.Preview, error)
	Close()
}

// PreviewREST serves releases/preview: GET of what is stored, POST of a Release that is
// not stored, or not like that. Nothing is written in either.
//
// In both, the user must be allowed to get each Secret that the Release names: who may
// choose the content, or its revision, can have a template say of a value what no mask
// catches. The hub reads no Secret for somebody who may not.
type PreviewREST struct {
	store    *registry.Store
	previews Previews
	secrets  secret.Check[*v1alpha1.Release]
}

var (
	_ rest.GetterWithOptions = &PreviewREST{}
	_ rest.NamedCreater      = &PreviewREST{}
	_ rest.StorageMetadata   = &PreviewREST{}
)

// New implements rest.Storage: what a POST takes.
func (*PreviewREST) New() runtime.Object { return &v1alpha1.Release{} }

// Destroy implements rest.Storage.
func (p *PreviewREST) Destroy() { p.previews.Close() }

// ProducesObject implements rest.StorageMetadata: what both verbs answer.
func (*PreviewREST) ProducesObject(string) any { return v1alpha1.Preview{} }

// ProducesMIMETypes implements rest.StorageMetadata: the usual ones.
func (*PreviewREST) ProducesMIMETypes(string) []string { return nil }

// NewGetOptions implements rest.GetterWithOptions.
func (*PreviewREST) NewGetOptions() (runtime.Object, bool, string) {
	return &v1alpha1.PreviewOptions{}, false, ""
}

// Get renders the stored Release.
func (p *PreviewREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	asked, ok := options.(*v1alpha1.PreviewOptions)
	if !ok {
		return nil, apierrors.NewBadRequest("the query is none of a preview")
	}
	if len(asked.Revision) > maxRevision || strings.ContainsFunc(asked.Revision, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("revision must be a commit, branch, tag or version: at most %d characters, without spaces and control characters", maxRevision))
	}
	stored, err := p.permitted(ctx, name)
	if err != nil {
		return nil, err
	}
	return answer(p.previews.Preview(ctx, stored.Namespace, name, asked.Revision, nil))
}

// permitted gives the stored Release to a user who may get the Secrets that it names.
func (p *PreviewREST) permitted(ctx context.Context, name string) (*v1alpha1.Release, error) {
	stored, err := p.stored(ctx, name)
	if err != nil {
		return nil, err
	}
	_, err = p.secrets.BeginCreate(ctx, stored, nil)
	return stored, err
}

// Create renders the Release of the body, which must be valid and is not stored.
func (p *PreviewREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.Release)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a Release")
	}
	release, err := p.unsaved(ctx, name, in, validate)
	if err != nil {
		return nil, err
	}
	return answer(p.previews.Preview(ctx, release.Namespace, name, "", release))
}

// unsaved checks a Release that is not stored, and says which Secrets may be read for it.
func (p *PreviewREST) unsaved(ctx context.Context, name string, in *v1alpha1.Release, validate rest.ValidateObjectFunc) (*v1alpha1.Release, error) {
	release := in.DeepCopy()
	var errs field.ErrorList
	if release.Name != "" && release.Name != name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), release.Name, "must be that of the path: "+name))
	}
	release.Name, release.Namespace, release.ManagedFields = name, request.NamespaceValue(ctx), nil
	release.Status = v1alpha1.ReleaseStatus{}
	if errs = append(errs, validation.Release(release)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Release").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, release.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if _, err := p.secrets.BeginCreate(ctx, release, nil); err != nil {
		return nil, err
	}
	release.Status.CheckedSecrets = release.Spec.SecretNames()
	// A change of a Release that exists is made of what that one is.
	switch stored, err := p.stored(ctx, name); {
	case apierrors.IsNotFound(err):
		release.UID, release.Generation = "", 0
	case err != nil:
		return nil, err
	default:
		release.UID, release.Generation = stored.UID, stored.Generation
	}
	return release, nil
}

func (p *PreviewREST) stored(ctx context.Context, name string) (*v1alpha1.Release, error) {
	found, err := p.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return releaseOf(found)
}
