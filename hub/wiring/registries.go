// SPDX-License-Identifier: Apache-2.0

package wiring

import "kumodo.io/convoy/api/source/v1alpha1"

// registriesOf are the registries of a namespace, whose credentials are for what a
// chart of the namespace depends on.
func (h *hub) registriesOf(namespace string) []v1alpha1.Source {
	var out []v1alpha1.Source
	for _, kind := range []string{v1alpha1.KindHelmRegistry, v1alpha1.KindOCIRegistry} {
		for _, object := range h.cache.Sources(kind) {
			if object.GetNamespace() == namespace {
				out = append(out, object)
			}
		}
	}
	return out
}
