// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"

	"kumodo.io/convoy/hub/source/address"
)

// Sentinels of redirects that are not followed.
var (
	ErrRedirects = errors.New("too many redirects")
	ErrDowngrade = errors.New("a redirect away from https")
)

// Dial sorts an error of a connection. host is what the user named.
func Dial(ctx context.Context, host string, err error) error {
	var (
		own       *Error
		name      *net.DNSError
		unknown   x509.UnknownAuthorityError
		wrongName x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		timeout   net.Error
		inner     *url.Error
		proxy     *address.ProxyError
		noTLS     tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &own):
		return own // without what the client put around it: the URL
	case errors.Is(err, address.ErrDenied):
		return Failf(ClassDenied, "%s: %w; an operator opens ranges with --source-allow-cidr", host, deniedOnly(err))
	case errors.Is(err, http.ErrSchemeMismatch):
		return Failf(ClassUnreachable, "%s speaks http where https is needed", host)
	case errors.As(err, &noTLS):
		return Failf(ClassUnreachable, "%s does not speak TLS, which is needed", host)
	case errors.Is(err, ErrRedirects), errors.Is(err, ErrDowngrade):
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return Failf(ClassUnreachable, "%s: %w", host, err)
	case errors.As(err, &proxy) && ctx.Err() == nil:
		return Failf(ClassUnreachable, "%s: %s", host, Clean(proxy.Error()))
	case errors.As(err, &name):
		return Failf(ClassUnreachable, "%s: the name does not resolve", host)
	case errors.As(err, &unknown):
		return Failf(ClassCertificate, "%s: the certificate is from an authority that is not trusted; caSecretRef names one", host)
	case errors.As(err, &wrongName), errors.As(err, &invalid), errors.As(err, &verify):
		return Failf(ClassCertificate, "%s: the certificate is not valid: %s", host, Clean(RootCause(err).Error()))
	case errors.Is(ctx.Err(), context.Canceled):
		return Failf(ClassUnreachable, "%s: given up: %w", host, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Failf(ClassTimeout, "%s: no answer in time", host)
	default:
		return Failf(ClassUnreachable, "%s: %s", host, Clean(RootCause(err).Error()))
	}
}

// deniedOnly keeps the sentinel with the address, without what the dialler adds.
func deniedOnly(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || errors.Is(inner, address.ErrDenied) && errors.Unwrap(inner) == nil {
			return err
		}
		err = inner
	}
}

// RootCause is the innermost error: the outer ones repeat the URL.
func RootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
