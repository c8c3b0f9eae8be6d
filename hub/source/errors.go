// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/git"
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

// reasons of what package git says.
var reasons = map[git.Class]string{
	git.ClassUnreachable: v1alpha1.ReasonUnreachable,
	git.ClassAuth:        v1alpha1.ReasonAuthFailed,
	git.ClassCertificate: v1alpha1.ReasonCertificateNotTrusted,
	git.ClassHostKey:     v1alpha1.ReasonHostKeyNotTrusted,
	git.ClassDenied:      v1alpha1.ReasonDenied,
	git.ClassRateLimited: v1alpha1.ReasonRateLimited,
	git.ClassNotFound:    v1alpha1.ReasonRefNotFound,
	git.ClassTooLarge:    v1alpha1.ReasonTooLarge,
	git.ClassInvalid:     v1alpha1.ReasonInvalid,
	git.ClassTimeout:     v1alpha1.ReasonTimeout,
}

// explain makes an Error of anything.
func explain(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	e := &Error{reason: v1alpha1.ReasonUnreachable, err: err}
	var remote *git.Error
	switch {
	case errors.As(err, &remote):
		e.reason, e.retryAfter = reasons[remote.Class], remote.RetryAfter
	case errors.Is(err, ErrNoHostCluster):
		e.reason = v1alpha1.ReasonNoHostCluster
	case errors.Is(err, ErrSecretNotFound):
		e.reason = v1alpha1.ReasonSecretMissing
	case errors.Is(err, ErrNotChecked):
		e.reason = v1alpha1.ReasonNotChecked
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
