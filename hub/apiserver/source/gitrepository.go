// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/validation"
)

var gitRepository = newKind(names[*v1alpha1.GitRepository]{
	newObject: func() *v1alpha1.GitRepository { return &v1alpha1.GitRepository{} },
	newList:   func() runtime.Object { return &v1alpha1.GitRepositoryList{} },
	plural:    "gitrepositories", singular: "gitrepository",
	// Not gitrepo: hosts that run Flux have that one.
	short:    "cvgit",
	validate: validation.GitRepository,
	warnings: validation.GitRepositoryWarnings,
	prepare:  replaceDefaultBranch,
	changed: func(g, old *v1alpha1.GitRepository) bool {
		return !equality.Semantic.DeepEqual(g.Spec, old.Spec)
	},
	keepSpec: func(g, old *v1alpha1.GitRepository) { g.Spec = old.Spec },
	fields: func(g *v1alpha1.GitRepository) []secretField {
		return credentialFields(g.Spec.SecretRef, g.Spec.CASecretRef, g.Spec.Webhook)
	},
})

// replaceDefaultBranch lets a user who never chose a branch choose a tag, range
// or commit: an apply leaves the branch in place that stands there by default,
// and both together would be refused.
func replaceDefaultBranch(g, before *v1alpha1.GitRepository) {
	byDefault := v1alpha1.GitRef{Branch: v1alpha1.DefaultBranch}
	if before.Spec.Ref == byDefault && g.Spec.Ref != byDefault && g.Spec.Ref.Branch == v1alpha1.DefaultBranch {
		g.Spec.Ref.Branch = ""
	}
}
