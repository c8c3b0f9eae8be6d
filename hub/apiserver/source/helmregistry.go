// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/validation"
)

var helmRegistry = newKind(names[*v1alpha1.HelmRegistry]{
	newObject: func() *v1alpha1.HelmRegistry { return &v1alpha1.HelmRegistry{} },
	newList:   func() runtime.Object { return &v1alpha1.HelmRegistryList{} },
	plural:    "helmregistries", singular: "helmregistry", short: "cvhelm",
	validate: validation.HelmRegistry,
	warnings: validation.HelmRegistryWarnings,
	changed: func(h, old *v1alpha1.HelmRegistry) bool {
		return !equality.Semantic.DeepEqual(h.Spec, old.Spec)
	},
	keepSpec: func(h, old *v1alpha1.HelmRegistry) { h.Spec = old.Spec },
	fields: func(h *v1alpha1.HelmRegistry) []secretField {
		return append(credentialFields(h.Spec.SecretRef, h.Spec.CASecretRef, h.Spec.Webhook), verifyField(h.Spec.Verify)...)
	},
})
