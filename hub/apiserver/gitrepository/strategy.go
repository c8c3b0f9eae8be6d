// SPDX-License-Identifier: Apache-2.0

// Package gitrepository stores and serves GitRepositories, with the subresource
// status. It stands before the flow: a GitRepository says where content comes
// from, and this room says which Secrets may be used to get it.
package gitrepository

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// kind is what is particular to GitRepositories.
var kind = &strategy.Kind[*v1alpha1.GitRepository]{
	New:     func() *v1alpha1.GitRepository { return &v1alpha1.GitRepository{} },
	NewList: func() runtime.Object { return &v1alpha1.GitRepositoryList{} },
	Version: v1alpha1.SchemeGroupVersion, Plural: "gitrepositories", Singular: "gitrepository",
	// Not gitrepo: hosts that run Flux have that one.
	ShortNames: []string{"cvgit"},

	ShardBy: func(g *v1alpha1.GitRepository) string { return g.Name },

	Changed: changed,
	// The references to Secrets were checked before this is called (see storage.go).
	Created: func(g *v1alpha1.GitRepository) {
		g.Status = v1alpha1.GitRepositoryStatus{CheckedSecrets: g.Spec.SecretNames()}
	},
	// When the spec changed, the references are recorded as checked: they were, for
	// the user who changes it, before this is called.
	Updated: func(g, old *v1alpha1.GitRepository) {
		replaceDefaultBranch(g, old)
		g.Status = *old.Status.DeepCopy()
		if changed(g, old) {
			g.Status.CheckedSecrets = g.Spec.SecretNames()
		}
	},
	// Nobody adds a checked reference by writing the status.
	Reported: func(g, old *v1alpha1.GitRepository) {
		g.Spec = old.Spec
		g.Status.CheckedSecrets = old.Status.CheckedSecrets
	},
	KeptStatus: []fieldpath.Path{fieldpath.MakePathOrDie("status", "checkedSecrets")},

	Validate:       validation.GitRepository,
	ValidateUpdate: validation.GitRepositoryUpdate,
	ValidateStatus: validation.GitRepositoryStatusUpdate,
	Warnings:       validation.GitRepositoryWarnings,
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
