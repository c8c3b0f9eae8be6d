// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// RevokeREST serves clusters/revoke: the identity that joined is not accepted any
// more. The gateway, which sees the Cluster change, ends its session.
type RevokeREST = strategy.Verb[*v1alpha1.RevokeRequest, *v1alpha1.Cluster]

var _ rest.NamedCreater = &RevokeREST{}

// newRevoke records since when the identity is refused. A token that is out is
// void too: only one that is made afterwards lets an agent in. Done twice, it
// answers with the first time.
func newRevoke(status *registry.Store, now clock.PassiveClock) *RevokeREST {
	return &RevokeREST{
		Store: status,
		Empty: func() *v1alpha1.RevokeRequest { return &v1alpha1.RevokeRequest{} },
		Kind:  v1alpha1.SchemeGroupVersion.WithKind("RevokeRequest"),
		Check: func(r *v1alpha1.RevokeRequest, name string) field.ErrorList {
			r.RevokedAt = nil
			return validation.RevokeRequest(r, name)
		},
		Change: func(_ context.Context, _ *v1alpha1.RevokeRequest, c *v1alpha1.Cluster) error {
			switch {
			case c.Spec.ConnectionMode != v1alpha1.ConnectionModeAgent:
				return conflict(c, errNoAgent)
			case c.Status.Agent == nil && c.Status.Join == nil:
				return conflict(c, errNeverJoined)
			}
			c.Status.Join = nil
			if c.Status.Agent != nil && c.Status.Agent.RevokedAt == nil {
				at := metav1.NewTime(now.Now()).Rfc3339Copy()
				c.Status.Agent.RevokedAt = &at
			}
			return nil
		},
		Answer: func(_ context.Context, r *v1alpha1.RevokeRequest, c *v1alpha1.Cluster, _ bool) error {
			if c.Status.Agent != nil {
				r.RevokedAt = c.Status.Agent.RevokedAt
			}
			return nil
		},
	}
}
