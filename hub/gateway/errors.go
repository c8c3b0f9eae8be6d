// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// Errors of the gateway.
var (
	// ErrOptions: the gateway was not given what it needs to be safe.
	ErrOptions = errors.New("gateway options")
	// ErrAway: no session of that Cluster.
	ErrAway = errors.New("agent is not connected")
	// ErrNotHeld: the agent does not have what it was asked for.
	ErrNotHeld = errors.New("agent does not hold that")
	// ErrCrowded: too many connections are not authenticated yet.
	ErrCrowded = errors.New("too many handshakes")
)

// Refusal is an answer that names why something is not allowed.
type Refusal struct {
	Code    int
	Reason  string // one of tunnel.Reason...
	Message string
	// Retry tells when to come back; 0: no hint.
	Retry time.Duration
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Reason, r.Message) }

func refuse(reason, message string) *Refusal {
	return &Refusal{Code: http.StatusForbidden, Reason: reason, Message: message}
}

var _ error = (*Refusal)(nil)

// writeRefusal answers with a Refusal.
func writeRefusal(w http.ResponseWriter, r *Refusal) {
	tunnel.WriteProblem(w, r.Code, r.Reason, r.Message, r.Retry)
}
