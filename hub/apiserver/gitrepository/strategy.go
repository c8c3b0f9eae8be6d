// SPDX-License-Identifier: Apache-2.0

// Package gitrepository stores and serves GitRepositories, with the subresource
// status. It stands before the flow: a GitRepository says where content comes
// from, and this room says which Secrets may be used to get it.
package gitrepository

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/shard"
	"kumodo.io/convoy/hub/apiserver/validation"
)

type mainStrategy struct {
	strategy.Base
	shards int
}

// PrepareForCreate drops the status, but for the references to Secrets: those
// were checked before this is called (see secrets.go).
func (s mainStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	g := from(obj)
	g.Status = v1alpha1.GitRepositoryStatus{CheckedSecrets: g.Spec.SecretNames()}
	g.Generation = 1
	strategy.SetShard(g, shard.Of(g.Namespace, g.Name, s.shards))
}

// PrepareForUpdate keeps the status. When the spec changed, the generation is
// counted up and the references are recorded as checked: they were, for the user
// who changes it, before this is called.
func (s mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	g, before := from(obj), from(old)
	replaceDefaultBranch(g, before)
	g.Status = *before.Status.DeepCopy()
	if changed(g, before) {
		g.Generation = before.Generation + 1
		g.Status.CheckedSecrets = g.Spec.SecretNames()
	}
	strategy.SetShard(g, shard.Of(g.Namespace, g.Name, s.shards))
}

// replaceDefaultBranch lets a user who never chose a branch choose a tag, range
// or commit: an apply leaves the branch in place that stands there by default,
// and both together would be refused.
func replaceDefaultBranch(g, before *v1alpha1.GitRepository) {
	byDefault := v1alpha1.GitRef{Branch: v1alpha1.DefaultBranch}
	if before.Spec.Ref == byDefault && g.Spec.Ref != byDefault && g.Spec.Ref.Branch == v1alpha1.DefaultBranch {
		g.Spec.Ref.Branch = ""
	}
}

// changed says whether the spec did. It decides about a new generation and about
// a new check of the Secrets: whoever changes the URL must be allowed to read
// them, or could send them to a host of his own.
func changed(g, before *v1alpha1.GitRepository) bool {
	return !equality.Semantic.DeepEqual(g.Spec, before.Spec)
}

// Validate checks a new GitRepository.
func (mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.GitRepository(from(obj))
}

// ValidateUpdate checks a changed GitRepository.
func (mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.GitRepositoryUpdate(from(obj), from(old))
}

// WarningsOnCreate tells what is legal and unwise.
func (mainStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return validation.GitRepositoryWarnings(from(obj))
}

// WarningsOnUpdate tells what is legal and unwise.
func (mainStrategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return validation.GitRepositoryWarnings(from(obj))
}

// GetResetFields names what a write of the main resource throws away.
func (mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.Reset(v1alpha1.SchemeGroupVersion.String(), fieldpath.MakePathOrDie("status"))
}

type statusStrategy struct {
	mainStrategy
}

// PrepareForUpdate keeps everything but the status, and in it the checked
// references: nobody can add one by writing the status.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	g, before := from(obj), from(old)
	g.Spec = before.Spec
	strategy.KeepMetadata(&g.ObjectMeta, &before.ObjectMeta)
	g.Status.CheckedSecrets = before.Status.CheckedSecrets
	strategy.SetShard(g, shard.Of(g.Namespace, g.Name, s.shards))
}

// ValidateUpdate checks a changed status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.GitRepositoryStatusUpdate(from(obj), from(old))
}

// WarningsOnUpdate has none: what the spec says is not this user's doing.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields names what a write of the status throws away.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.Reset(v1alpha1.SchemeGroupVersion.String(),
		fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", "checkedSecrets"))
}

// from gives the GitRepository that the registry hands over as a general object.
// The zero one for anything else fails validation; the registry is typed by its
// constructor, so that does not happen.
func from(obj runtime.Object) *v1alpha1.GitRepository {
	if g, ok := obj.(*v1alpha1.GitRepository); ok {
		return g
	}
	return &v1alpha1.GitRepository{}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	g, ok := obj.(*v1alpha1.GitRepository)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %T", ErrNotGitRepository, obj)
	}
	return g.Labels, strategy.ObjectFields(&g.ObjectMeta), nil
}
