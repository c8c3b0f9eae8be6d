// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/api/core/v1alpha1"
)

var (
	errNotHeld  = errors.New("no deletion of it is held: there is nothing to confirm")
	errStale    = errors.New("what would be deleted is no longer what the held deletion named: look at status.heldDeletion and confirm that")
	errTooMany  = errors.New("too many confirmations are kept: delete what was confirmed, or wait")
	errNoUser   = errors.New("nobody is known who confirms")
	errMayNot   = errors.New("confirming a deletion needs the verb " + VerbConfirm)
	errDeleting = errors.New("it is being deleted already")
)

// heldError refuses a deletion. It is an answer of the API: Forbidden, with a
// cause of type DeletionHeld.
type heldError struct {
	*apierrors.StatusError
}

// Unwrap lets callers see the answer of the API.
func (e *heldError) Unwrap() error { return e.StatusError }

func newHeldError(resource schema.GroupResource, name, message string) *heldError {
	status := apierrors.NewForbidden(resource, name, errors.New(message))
	status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: metav1.CauseType(v1alpha1.ReasonDeletionHeld), Field: "status.heldDeletion", Message: message,
	})
	return &heldError{status}
}
