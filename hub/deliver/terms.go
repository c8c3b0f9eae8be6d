// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Intent is what an apply order is to say.
type Intent struct {
	Release    *v1alpha1.Release
	ClusterUID types.UID
	// Revision of the source, for people.
	Revision string
	// Objects is required; Sealed is nil when nothing was sealed.
	Objects, Sealed *tunnel.Layer
	// Hooks: the render has some.
	Hooks bool
	Terms
	Once
}

// Terms are what an order carries besides its render, and what holds as long as the
// order does: as soon as others are wanted there has to be a new one.
type Terms struct {
	Policy         tunnel.Policy
	ServiceAccount string
	Ignore         []tunnel.Ignore
	Permitted      *tunnel.Allowed
	Wave           int32
	Rules          *tunnel.Layer
	Facts          map[string]string
}

// Once is what somebody asked for, and what one order says for all: it is no part of
// the terms.
type Once struct {
	// Force: the render is applied again, with its hooks.
	Force bool
	// Confirmed is the digest of a list of deletions, until when is by the hub's clock.
	Confirmed      string
	ConfirmedUntil time.Time
	// Actions on hooks, newest last.
	Actions []tunnel.HookAction
}

// TermsOf are those of an order that was issued.
func TermsOf(order tunnel.Order) Terms {
	policy := order.Policy
	policy.Confirmed, policy.ConfirmedUntil = "", time.Time{}
	return Terms{
		Policy: policy, ServiceAccount: order.ServiceAccount, Ignore: order.Ignore, Permitted: order.Permitted,
		Wave: order.Wave, Rules: order.Rules, Facts: order.Facts,
	}
}

// Equal says whether two terms say the same, whichever of them was read from a payload.
func (t Terms) Equal(u Terms) bool {
	if reflect.DeepEqual(t, u) {
		return true
	}
	// What is empty and what is not there are the same on the wire, with exceptions that
	// it knows.
	a, errA := json.Marshal(t.payload())
	b, errB := json.Marshal(u.payload())
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// payload is an order with these terms, and nothing else.
func (t Terms) payload() tunnel.Order {
	return tunnel.Order{
		Policy: t.Policy, ServiceAccount: t.ServiceAccount, Ignore: t.Ignore, Permitted: t.Permitted,
		Wave: t.Wave, Rules: t.Rules, Facts: t.Facts,
	}
}

// put writes all into an order, and names the features that the agent needs for it.
func (i Intent) put(order *tunnel.Order) {
	order.Revision, order.Objects, order.Sealed = i.Revision, i.Objects, i.Sealed
	t := i.payload()
	order.Policy, order.ServiceAccount, order.Ignore, order.Permitted = t.Policy, t.ServiceAccount, t.Ignore, t.Permitted
	order.Wave, order.Rules, order.Facts = t.Wave, t.Rules, t.Facts
	order.Force, order.Actions = i.Force, i.Actions
	order.Policy.Confirmed, order.Policy.ConfirmedUntil = i.Confirmed, i.ConfirmedUntil
	p := &order.Policy
	for _, need := range []struct {
		feature string
		needed  bool
	}{
		{tunnel.FeatureSealed, i.Sealed != nil},
		{tunnel.FeatureReplace, p.Replace},
		{tunnel.FeatureHooks, i.Hooks || len(i.Actions) > 0},
		{tunnel.FeatureImpersonate, i.ServiceAccount != ""},
		{tunnel.FeatureIgnore, len(i.Ignore) > 0},
		{tunnel.FeatureRules, i.Rules != nil},
		{tunnel.FeaturePermitted, i.Permitted != nil},
		{tunnel.FeatureBudget, p.Budget != nil || p.Confirmed != ""},
		{tunnel.FeaturePrune, len(p.Allowed) > 0 || p.Propagation != ""},
		{tunnel.FeatureWave, i.Wave != 0},
		{tunnel.FeatureSuspend, p.Suspended},
		{tunnel.FeatureRetry, p.Retry != nil},
	} {
		if need.needed {
			order.Requires = append(order.Requires, need.feature)
		}
	}
}
