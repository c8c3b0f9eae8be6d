// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
)

var (
	// ErrOptions: the options of New are incomplete.
	ErrOptions = errors.New("local: options are incomplete")
	// ErrNoSecret: a Secret does not exist.
	ErrNoSecret = errors.New("the Secret does not exist")
	// ErrNoHost: the hub has no host cluster to read Secrets from.
	ErrNoHost = errors.New("the hub has no host cluster")
	// ErrAddress: a connection would lead to where clusters may not be. Dial wraps it.
	ErrAddress = errors.New("the address is loopback, link-local or of the hub's own network; --cluster-allow-cidr opens ranges")
	// ErrNotServed: no engine runs for that Cluster here.
	ErrNotServed = errors.New("no engine runs for that cluster in this hub")

	errRedirected = errors.New("the server sent a redirect, which is not followed")
)

// fault says why a Cluster is not served.
type fault struct {
	reason, message string
	// again: it is tried again after a pause; otherwise at the next resync.
	again bool
	// drop: an engine that runs is ended; otherwise it goes on as well as it can.
	drop bool
	err  error
}

func (f *fault) Error() string { return f.message }
func (f *fault) Unwrap() error { return f.err }

// unsupported is what waiting does not change.
func unsupported(format string, args ...any) *fault {
	return &fault{reason: v1alpha1.ReasonUnsupported, message: fmt.Sprintf(format, args...), drop: true}
}

// broken is what the cluster's owner has to put right: nothing may be done with
// what is there now.
func broken(format string, args ...any) *fault {
	return &fault{reason: v1alpha1.ReasonProbeFailed, message: fmt.Sprintf(format, args...), again: true, drop: true}
}

// away is what may pass.
func away(err error, format string, args ...any) *fault {
	return &fault{reason: v1alpha1.ReasonProbeFailed, message: fmt.Sprintf(format, args...), again: true, err: err}
}

// conflict: somebody else works on that cluster.
func conflict(format string, args ...any) *fault {
	return &fault{reason: v1alpha1.ReasonClusterConflict, message: fmt.Sprintf(format, args...), again: true, drop: true}
}

// plain says what went wrong with a call, alike for the same cause: a message with a
// port in it that changes would be a write for each attempt.
func plain(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress.Error()
	case errors.Is(err, errRedirected):
		return errRedirected.Error()
	}
	var wrong *tls.CertificateVerificationError
	if errors.As(err, &wrong) {
		err = wrong.Err
	}
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		return "the server's certificate is signed by an unknown authority"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		cause := op.Err.Error()
		if op.Timeout() {
			cause = "timeout"
		}
		if op.Op == "dial" && op.Addr != nil {
			return fmt.Sprintf("dial %s: %s", op.Addr, cause)
		}
		return op.Op + ": " + cause
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		return asked.Err.Error()
	}
	return err.Error()
}

// clip bounds a message.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-3], "") + "..."
}
