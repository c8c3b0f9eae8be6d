// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/transport"

	"kumodo.io/convoy/pkg/tunnel"
)

// An order may name an account of the target. All calls for its Release are made as
// that one then: the Runner's own account only needs the right to impersonate it, and
// the cluster's RBAC decides what the Release may do. What Releases share, watches and
// the questions where a kind lives, stays the Runner's own.

// accountForm is how an order writes an account: <namespace>:<name>.
var accountForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)

// userPrefix makes the user of an account out of its namespace and name.
const userPrefix = "system:serviceaccount:"

// actorKey is the key of the user that calls of a context are made as.
type actorKey struct{}

// actAs makes the calls of a context those of an account; empty: the Runner's own.
func actAs(ctx context.Context, account string) context.Context {
	if account != "" {
		account = userPrefix + account
	}
	return context.WithValue(ctx, actorKey{}, account)
}

// asOurselves makes the calls of a context those of the Runner's own account.
func asOurselves(ctx context.Context) context.Context { return actAs(ctx, "") }

// impersonate names the user that a request is made as, if it is another. The server
// adds the groups that every account is in.
func impersonate(ctx context.Context, req *http.Request) {
	if user, ok := ctx.Value(actorKey{}).(string); ok && user != "" {
		req.Header.Set(transport.ImpersonateUserHeader, user)
	}
}

// healer is the account that what was applied last is kept as it is with. An order that
// is newer, and may have been refused, does not decide on it.
func (r *release) healer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.applied != nil:
		return r.applied.Account
	case r.attempt != nil:
		return r.attempt.Account
	}
	return r.order.ServiceAccount
}

// withAccount says of an operation that failed that the account it was made as does
// not exist: the server takes one for an account without rights.
func (r *release) withAccount(ctx context.Context, order tunnel.Order, message string) string {
	namespace, name, ok := strings.Cut(order.ServiceAccount, ":")
	if !ok {
		return message
	}
	_, err := r.runner.target.look(asOurselves(ctx), resource{version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", namespaced: true}, namespace, name)
	if !apierrors.IsNotFound(err) {
		return message // it is there, or it cannot be told: the message stands as it is
	}
	return fmt.Sprintf("service account %s does not exist on the cluster; %s", order.ServiceAccount, message)
}
