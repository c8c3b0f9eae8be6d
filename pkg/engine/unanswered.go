// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"syscall"
)

// ErrNoAnswer: the API server of the cluster did not answer a call.
var ErrNoAnswer = errors.New("the cluster's API server does not answer")

// noAnswerError says why, in words that are the same for the same cause: no address, no
// port and no path, which would tell what is nobody's business and make a new report of
// each attempt.
type noAnswerError struct{ cause error }

func (e *noAnswerError) Error() string   { return ErrNoAnswer.Error() + ": " + plainCause(e.cause) }
func (e *noAnswerError) Unwrap() []error { return []error{ErrNoAnswer, e.cause} }

// NoAnswer wraps the error of a call of the API server that got no answer, so that
// errors.Is finds ErrNoAnswer. One that was called off stays what it is.
func NoAnswer(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &noAnswerError{cause: err}
}

// plainCause says why a server did not answer.
func plainCause(err error) string {
	var (
		wait      interface{ Timeout() bool }
		number    syscall.Errno
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		wrong     *tls.CertificateVerificationError
		op        *net.OpError
		asked     *url.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &wait) && wait.Timeout():
		return "timeout"
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &name):
		return "its name is not known"
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &wrong):
		return "its certificate is not valid"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	case errors.As(err, &asked):
		return asked.Err.Error()
	}
	return err.Error()
}
