// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/secret"
)

// references of a Release to Secrets, each Secret once, by the first field that
// names it.
func references(r *v1alpha1.Release) []secret.Reference {
	var out []secret.Reference
	seen := map[string]bool{}
	add := func(name, field string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, secret.Reference{Secret: name, Field: field})
		}
	}
	if helm := r.Spec.Content.Helm; helm != nil {
		for i, from := range helm.ValuesFrom {
			if from.Kind == v1alpha1.ReferenceSecret {
				add(from.Name, fmt.Sprintf("spec.content.helm.valuesFrom[%d].name", i))
			}
		}
	}
	for i, mutation := range r.Spec.Mutations {
		if mutation.From != nil && mutation.From.Kind == v1alpha1.ReferenceSecret {
			add(mutation.From.Name, fmt.Sprintf("spec.mutations[%d].from.name", i))
		}
	}
	for i, ref := range r.Spec.Images.SecretRefs {
		add(ref.Name, fmt.Sprintf("spec.images.secretRefs[%d].name", i))
	}
	return out
}

// usesSecretsAnew says whether more changed than how a render is rolled out or
// deleted. Whoever changes what is rendered decides what becomes of the values
// that come out of a Secret, so he must be allowed to get it.
func usesSecretsAnew(r, old *v1alpha1.Release) bool {
	next := r.Spec
	next.SyncPolicy, next.DeletionPolicy = old.Spec.SyncPolicy, old.Spec.DeletionPolicy
	return !equality.Semantic.DeepEqual(next, old.Spec)
}
