// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// addQueries says how the queries of our own subresources are read.
func addQueries(s *runtime.Scheme) error {
	err := s.AddConversionFunc((*url.Values)(nil), (*corev1alpha1.PreviewOptions)(nil), func(in, out any, _ conversion.Scope) error {
		query, known := in.(*url.Values)
		options, ours := out.(*corev1alpha1.PreviewOptions)
		if !known || !ours {
			return errQuery
		}
		options.Revision = query.Get("revision")
		return nil
	})
	if err != nil {
		return fmt.Errorf("add the query of previews: %w", err)
	}
	return nil
}
