// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"net/http"

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
