// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
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
// the caller made. It is a create, so that dry run, body limit, audit and
// openapi are those of any other create.
type JoinREST struct {
	status *registry.Store
	info   JoinInfo
	clock  clock.PassiveClock
}

var (
	_ rest.NamedCreater = &JoinREST{}
	_ rest.Storage      = &JoinREST{}
)

// New gives an empty request.
func (*JoinREST) New() runtime.Object { return &v1alpha1.JoinRequest{} }

// Destroy has nothing to do.
func (*JoinREST) Destroy() {}

// Create records the token in the Cluster's status, in place of one that is there.
func (r *JoinREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.JoinRequest)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a JoinRequest")
	}
	request := in.DeepCopy()
	request.Status = v1alpha1.JoinRequestStatus{}
	if errs := validation.JoinRequest(request, name); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("JoinRequest").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, request.DeepCopy()); err != nil {
			return nil, err
		}
	}
	expires := metav1.NewTime(r.clock.Now().Add(request.Spec.TTL.Duration)).Rfc3339Copy()

	record := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		c := from(old).DeepCopy()
		if c.DeletionTimestamp != nil {
			return nil, apierrors.NewConflict(v1alpha1.Resource("clusters"), name, errDeleting)
		}
		if a := c.Status.Agent; a != nil && a.JoinKey == request.Spec.PublicKey {
			return nil, apierrors.NewConflict(v1alpha1.Resource("clusters"), name, errUsedToken)
		}
		c.Status.Join = &v1alpha1.ClusterJoinStatus{PublicKey: request.Spec.PublicKey, ExpiresAt: expires}
		return c, nil
	})
	out, _, err := r.status.Update(ctx, name, record, nil, nil, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, err
	}
	c := from(out)
	request.Name, request.Namespace = c.Name, c.Namespace
	request.Status = v1alpha1.JoinRequestStatus{
		ExpiresAt:  &expires,
		GatewayURL: r.info.GatewayURL,
		HubID:      r.info.HubID,
		ClusterUID: string(c.UID),
		HubCA:      r.info.HubCA,
		CAPin:      r.info.CAPin,
		OrderKeys:  r.info.OrderKeys,
		AgentImage: r.info.AgentImage,
	}
	return request, nil
}
