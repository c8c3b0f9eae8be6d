// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"net/http"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// Errors of the link.
var (
	// ErrNoIdentity is what an IdentityStore without one returns.
	ErrNoIdentity = errors.New("no identity yet")
	// ErrNoToken: there is neither an identity nor a token to get one.
	ErrNoToken = errors.New("neither an identity nor a join token")
	// ErrOffline: there is no session, and none came in time.
	ErrOffline = errors.New("no session with the hub")
	// ErrIncomplete: the orders that the hub sent are not those that it signed for.
	ErrIncomplete = errors.New("orders do not match the signed head")
	// ErrSilent: nothing came from the hub for too long.
	ErrSilent = errors.New("hub is silent")
	// ErrRecycle: the session has come to its planned end.
	ErrRecycle = errors.New("session has come to its planned end")
	// ErrNotHeld: no Release held here refers to that layer.
	ErrNotHeld = errors.New("not held here")
	// ErrRejected: the hub proved itself and did not accept our certificate.
	ErrRejected = errors.New("the hub does not accept the certificate")
	// ErrClock: the clock here does not fit the dates of the hub's certificate.
	ErrClock = errors.New("the clock of this machine and the hub's certificate do not fit")
	// ErrNewToken ends a session in favour of a join with a new token.
	ErrNewToken = errors.New("there is a new join token")
	// ErrUnreached is how Run ends when nothing at all could be reached for
	// Options.RestartAfter: the program is to be started anew.
	ErrUnreached = errors.New("nothing was reached for too long")
	// errSilentEnds: the hub hangs up again and again, for whatever reason.
	errSilentEnds = errors.New("the hub hangs up without a word")
	// errStalled: a download was given up.
	errStalled = errors.New("nothing more came from the hub")
	// errUnreachable: not even a connection came about.
	errUnreachable = errors.New("nothing answers")
	// ErrOptions: the link was not given what it needs.
	ErrOptions = errors.New("link options")
)

// refused tells whether the hub has said no, so that there is no point in asking
// again soon, and what it said.
func refused(err error) (tunnel.Problem, bool) {
	var status *tunnel.StatusError
	if errors.As(err, &status) && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden) {
		return status.Problem, true
	}
	return tunnel.Problem{}, false
}

// goAwayError ends a session that the hub asked to be ended.
type goAwayError struct{ within time.Duration }

func (e *goAwayError) Error() string { return "the hub asks for a pause of up to " + e.within.String() }

// outerError is a certificate outside the websocket that is not trusted. Its text
// leaves out the many reasons, one for each root and name, which errors.Is finds.
type outerError struct {
	who string
	err error
}

func (e *outerError) Error() string {
	return "certificate outside the websocket: of " + e.who +
		", is trusted neither as the hub's, nor by the system, nor by --outer-ca-file"
}

func (e *outerError) Unwrap() error { return e.err }
