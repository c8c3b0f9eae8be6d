// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// JoinInfo is what an installer has to know of the hub. Nothing in it is secret.
type JoinInfo struct {
	// GatewayURL is where agents dial, as in wss://convoy.example:443.
	GatewayURL string
	// HubID names the hub.
	HubID string
	// HubCA is the certificate, PEM.
	HubCA string
	// CAPin is "sha256:<hex>" of the CA's public key.
	CAPin string
	// OrderKeys are Ed25519 public keys, standard base64.
	OrderKeys []string
	// AgentImage to install.
	AgentImage string
}

// JoinREST serves clusters/join: it registers the public half of a token that
// the caller made.
type JoinREST = strategy.Verb[*v1alpha1.JoinRequest, *v1alpha1.Cluster]

var _ rest.NamedCreater = &JoinREST{}

// newJoin records the token in the Cluster's status, in place of one that is there.
func newJoin(status *registry.Store, info JoinInfo, now clock.PassiveClock) *JoinREST {
	return &JoinREST{
		Store: status,
		Empty: func() *v1alpha1.JoinRequest { return &v1alpha1.JoinRequest{} },
		Kind:  v1alpha1.SchemeGroupVersion.WithKind("JoinRequest"),
		Check: func(r *v1alpha1.JoinRequest, name string) field.ErrorList {
			r.Status = v1alpha1.JoinRequestStatus{}
			return validation.JoinRequest(r, name)
		},
		Change: func(_ context.Context, r *v1alpha1.JoinRequest, c *v1alpha1.Cluster) error {
			switch a := c.Status.Agent; {
			case c.DeletionTimestamp != nil:
				return conflict(c, errDeleting)
			case c.Spec.ConnectionMode != v1alpha1.ConnectionModeAgent:
				return conflict(c, errNoAgent)
			case a != nil && a.JoinKey == r.Spec.PublicKey:
				return conflict(c, errUsedToken)
			}
			expires := metav1.NewTime(now.Now().Add(r.Spec.TTL.Duration)).Rfc3339Copy()
			c.Status.Join = &v1alpha1.ClusterJoinStatus{PublicKey: r.Spec.PublicKey, ExpiresAt: expires}
			return nil
		},
		Answer: func(_ context.Context, r *v1alpha1.JoinRequest, c *v1alpha1.Cluster, _ bool) error {
			expires := c.Status.Join.ExpiresAt
			r.Status = v1alpha1.JoinRequestStatus{
				ExpiresAt:  &expires,
				GatewayURL: info.GatewayURL,
				HubID:      info.HubID,
				ClusterUID: string(c.UID),
				HubCA:      info.HubCA,
				CAPin:      info.CAPin,
				OrderKeys:  info.OrderKeys,
				AgentImage: info.AgentImage,
			}
			return nil
		},
	}
}

func conflict(c *v1alpha1.Cluster, why error) error {
	return apierrors.NewConflict(v1alpha1.Resource("clusters"), c.Name, why)
}
