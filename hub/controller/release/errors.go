// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/source"
)

// ErrNotThere: a ConfigMap or Secret, or a key of one, does not exist.
var ErrNotThere = errors.New("does not exist")

var (
	errTextTooLarge = errors.New("is larger than 1 MiB")
	errNoKey        = errors.New("the Cluster's metadata has no such key")
	errTemplate     = errors.New("may hold {{ .cluster.KEY }} and nothing else between braces")
	errNoCluster    = errors.New("the Release names a Cluster that does not exist")
)

// referenceError is about what a Release refers to beside its source. It repeats no
// text of it.
type referenceError struct{ err error }

func (e *referenceError) Error() string { return e.err.Error() }
func (e *referenceError) Unwrap() error { return e.err }

// Reason for the Rendered condition.
func (e *referenceError) Reason() string {
	switch {
	case errors.Is(e.err, source.ErrNoHostCluster):
		return corev1alpha1.ReasonNoHostCluster
	case errors.Is(e.err, source.ErrNotChecked):
		return corev1alpha1.ReasonSourceNotChecked
	case errors.Is(e.err, errNoKey), errors.Is(e.err, errTemplate), errors.Is(e.err, errTextTooLarge):
		return corev1alpha1.ReasonRenderFailed
	case errors.Is(e.err, ErrNotThere):
		return corev1alpha1.ReasonValuesNotFound
	}
	return corev1alpha1.ReasonFetchFailed // the host did not answer
}
