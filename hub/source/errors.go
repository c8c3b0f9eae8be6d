// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/snapshot"
)

// Sentinels.
var (
	// ErrNoHostCluster: a SecretGetter without a host cluster to ask.
	ErrNoHostCluster = errors.New("there is no host cluster to read Secrets from")
	// ErrSecretNotFound: the Secret does not exist.
	ErrSecretNotFound = errors.New("the Secret does not exist")
	// ErrNotChecked: a Secret is referenced whose use was never checked.
	ErrNotChecked = errors.New("the use of the Secret was not checked: whoever writes the reference must be allowed to get it")
	// ErrPathNotFound: the path does not exist at that revision.
	ErrPathNotFound = snapshot.ErrPathNotFound
	// ErrStopped: the coordinator is not running any more.
	ErrStopped = errors.New("the hub is stopping")
)

// Error is what the Coordinator returns. Its text is fit for a status: short, and
// without credentials.
type Error struct {
	reason     string
	retryAfter time.Duration
	err        error
}

func (e *Error) Error() string {
	text := e.err.Error()
	if len(text) > maxMessageBytes {
		text = text[:maxMessageBytes] + "..."
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.err }

// Reason for the source's Ready condition.
func (e *Error) Reason() string { return e.reason }

// RetryAfter is how long the server wants to be left alone; 0 if it did not say.
func (e *Error) RetryAfter() time.Duration { return e.retryAfter }

// reasons of what the clients of sources say.
var reasons = map[fault.Class]string{
	fault.ClassUnreachable: v1alpha1.ReasonUnreachable,
	fault.ClassAuth:        v1alpha1.ReasonAuthFailed,
	fault.ClassCertificate: v1alpha1.ReasonCertificateNotTrusted,
	fault.ClassHostKey:     v1alpha1.ReasonHostKeyNotTrusted,
	fault.ClassDenied:      v1alpha1.ReasonDenied,
	fault.ClassRateLimited: v1alpha1.ReasonRateLimited,
	fault.ClassNotFound:    v1alpha1.ReasonRefNotFound,
	fault.ClassTooLarge:    v1alpha1.ReasonTooLarge,
	fault.ClassInvalid:     v1alpha1.ReasonInvalid,
	fault.ClassTimeout:     v1alpha1.ReasonTimeout,
	fault.ClassSignature:   v1alpha1.ReasonSignatureInvalid,
}

// explain makes an Error of anything.
func explain(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	e := &Error{reason: v1alpha1.ReasonUnreachable, err: err}
	var remote *fault.Error
	switch {
	case errors.As(err, &remote):
		e.reason, e.retryAfter = reasons[remote.Class], remote.RetryAfter
	case errors.Is(err, ErrNoHostCluster):
		e.reason = v1alpha1.ReasonNoHostCluster
	case errors.Is(err, ErrSecretNotFound):
		e.reason = v1alpha1.ReasonSecretMissing
	case errors.Is(err, ErrNotChecked):
		e.reason = v1alpha1.ReasonNotChecked
	case errors.Is(err, errNoDigest):
		e.reason = v1alpha1.ReasonSignatureInvalid
	case errors.Is(err, context.DeadlineExceeded):
		e.reason = v1alpha1.ReasonTimeout
	}
	return e
}

// failure makes an Error with a reason.
func failure(reason, format string, args ...any) error {
	return &Error{reason: reason, err: fmt.Errorf(format, args...)}
}

// ReleaseReason gives the reason for a Release's Rendered condition.
func ReleaseReason(err error) string {
	if errors.Is(err, snapshot.ErrPathNotFound) || errors.Is(err, snapshot.ErrPath) {
		return corev1alpha1.ReasonPathNotFound
	}
	if errors.Is(err, snapshot.ErrLink) || errors.Is(err, snapshot.ErrTooLarge) {
		return corev1alpha1.ReasonRenderFailed
	}
	var own *Error
	if errors.As(err, &own) {
		switch own.reason {
		case v1alpha1.ReasonNotChecked:
			return corev1alpha1.ReasonSourceNotChecked
		case v1alpha1.ReasonNoHostCluster:
			return corev1alpha1.ReasonNoHostCluster
		}
	}
	return corev1alpha1.ReasonFetchFailed
}
