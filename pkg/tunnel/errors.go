// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the wire.
var (
	// ErrGuard: the peer broke a limit of the multiplexer; the session ends.
	ErrGuard = errors.New("peer broke a limit of the link")
	// ErrBudget: streams of this process hold too much unread.
	ErrBudget = errors.New("streams hold too much unread")
	// ErrClosed: the session has ended.
	ErrClosed = errors.New("session has ended")
	// ErrTimeout: a stream's deadline has passed, or the peer has not taken or answered
	// something in time. It is a net.Error.
	ErrTimeout error = timeout{}
	// ErrSubprotocol: the websocket peer speaks something else.
	ErrSubprotocol = errors.New("websocket subprotocol is not " + Subprotocol)
	// ErrRedirect: a peer answered with a redirect or a switch of protocols.
	ErrRedirect = errors.New("peer answered with a redirect or a switch of protocols")
	// ErrTooLong: a body or line is longer than its limit.
	ErrTooLong = errors.New("longer than allowed")

	// ErrType: a signed thing is of another type than wanted.
	ErrType = errors.New("signed payload is of another type")
	// ErrSignature: no known key made the signature.
	ErrSignature = errors.New("signature does not verify")
	// ErrOrder: an order or head does not say what it must.
	ErrOrder = errors.New("malformed order")
	// ErrToken: a join token does not parse.
	ErrToken = errors.New("malformed join token")
	// ErrIdentity: a certificate does not name a cluster of this hub.
	ErrIdentity = errors.New("certificate names no cluster of this hub")
	// ErrKey: a public key is of a kind that is not accepted.
	ErrKey = errors.New("public key is not accepted")
	// ErrHub: the peer is not the hub that was pinned.
	ErrHub = errors.New("peer is not the pinned hub")
)

type timeout struct{}

func (timeout) Error() string   { return "peer did not move in time" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// Problem is the body of each answer that is not a success.
type Problem struct {
	// Reason is one of the Reason constants.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Reasons of a Problem.
const (
	ReasonTokenUnknown   = "TokenUnknown"   // no such token for that Cluster
	ReasonTokenExpired   = "TokenExpired"   // past its time
	ReasonTokenUsed      = "TokenUsed"      // by another agent
	ReasonNonce          = "NonceUnknown"   // never given, used or older than NonceTTL
	ReasonProof          = "ProofInvalid"   // a signature of the join request does not verify
	ReasonClusterUnknown = "ClusterUnknown" // no such Cluster, or another identity joined
	// ReasonRevoked: somebody revoked the identity; a new join makes another.
	ReasonRevoked = "Revoked"
	// ReasonCloneDetected: two agents used one identity; a new join is needed.
	ReasonCloneDetected = "CloneDetected"
	// ReasonClusterConflict: the identity was used on another cluster, which is still
	// there, was there a moment ago, or was left for this one.
	ReasonClusterConflict = "ClusterConflict"
	// ReasonTooManyRecoveries: the bound key made too many certificates in a day.
	ReasonTooManyRecoveries = "TooManyRecoveries"

	ReasonHelloFirst = "HelloFirst" // a session starts with hello
	ReasonNotOrdered = "NotOrdered" // no order of this Cluster names that digest
	ReasonBadRequest = "BadRequest"
	ReasonTooLong    = "TooLong"
	ReasonOverloaded = "Overloaded" // come back after Retry-After
	ReasonNotFound   = "NotFound"
	ReasonNoRelease  = "NoRelease" // the agent does not know that Release
	ReasonInternal   = "Internal"
)

// StatusError is an answer of the peer that is not a success.
type StatusError struct {
	Code       int
	Problem    Problem
	RetryAfter time.Duration // 0 when the peer gave no hint
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("peer answered %d %s: %s", e.Code, e.Problem.Reason, e.Problem.Message)
}
