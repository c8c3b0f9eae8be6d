// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/validation"
)

var ociRegistry = newKind(names[*v1alpha1.OCIRegistry]{
	newObject: func() *v1alpha1.OCIRegistry { return &v1alpha1.OCIRegistry{} },
	newList:   func() runtime.Object { return &v1alpha1.OCIRegistryList{} },
	plural:    "ociregistries", singular: "ociregistry", short: "cvoci",
	validate: validation.OCIRegistry,
	warnings: validation.OCIRegistryWarnings,
	prepare:  replaceDefaultTag,
	changed: func(o, old *v1alpha1.OCIRegistry) bool {
		return !equality.Semantic.DeepEqual(o.Spec, old.Spec)
	},
	keepSpec: func(o, old *v1alpha1.OCIRegistry) { o.Spec = old.Spec },
	fields: func(o *v1alpha1.OCIRegistry) []secretField {
		return append(credentialFields(o.Spec.SecretRef, o.Spec.CASecretRef, o.Spec.Webhook), verifyField(o.Spec.Verify)...)
	},
})

// replaceDefaultTag lets a user who never chose a tag choose a range or a digest,
// as replaceDefaultBranch does.
func replaceDefaultTag(o, before *v1alpha1.OCIRegistry) {
	byDefault := v1alpha1.OCIRef{Tag: v1alpha1.DefaultTag}
	if before.Spec.Ref == byDefault && o.Spec.Ref != byDefault && o.Spec.Ref.Tag == v1alpha1.DefaultTag {
		o.Spec.Ref.Tag = ""
	}
}
