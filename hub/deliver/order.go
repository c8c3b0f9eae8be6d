// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Issue returns what makes the order, given the last sequence of the Release:
// the status write that records the order calls it, each time it is tried.
func (d *Deliverer) Issue(intent Intent) func(last int64) (v1alpha1.OrderStatus, error) {
	return func(last int64) (v1alpha1.OrderStatus, error) {
		order := d.order(intent.Release, intent.ClusterUID, tunnel.VerbApply, last)
		intent.put(&order)
		signed, err := d.sign(order)
		if err != nil {
			return v1alpha1.OrderStatus{}, err
		}
		return v1alpha1.OrderStatus{
			Sequence: order.Sequence, Payload: string(signed.Payload),
			Signature: base64.StdEncoding.EncodeToString(signed.Signature), KeyID: signed.KeyID,
		}, nil
	}
}

// order is the part that all verbs share. A sequence is never used twice and
// follows the clock, so that a hub that was restored from a backup is ahead of
// what its agents have seen.
func (d *Deliverer) order(release *v1alpha1.Release, cluster types.UID, verb tunnel.Verb, last int64) tunnel.Order {
	now := d.clock.Now()
	order := tunnel.Order{
		Verb: verb, Hub: d.options.HubID, ClusterUID: string(cluster),
		Release:  tunnel.ReleaseRef{UID: string(release.UID), Namespace: release.Namespace, Name: release.Name},
		Sequence: max(last+1, now.UnixMilli()), IssuedAt: now.UTC(),
	}
	switch verb {
	case tunnel.VerbApply:
		order.Requires = []string{tunnel.FeatureApply}
	case tunnel.VerbRemove:
		order.Requires = []string{tunnel.FeatureRemove}
	case tunnel.VerbRelease:
		order.Requires = []string{tunnel.FeatureRelease}
	}
	return order
}

// sign refuses to sign what no agent could read.
func (d *Deliverer) sign(order tunnel.Order) (tunnel.Signed, error) {
	signed, err := tunnel.SignJSON(tunnel.TypeOrder, order, d.options.Key)
	if err != nil {
		return tunnel.Signed{}, err
	}
	if _, err := tunnel.ParseOrder(signed.Payload); err != nil {
		return tunnel.Signed{}, fmt.Errorf("sign: %w", err)
	}
	d.metrics.signed.WithLabelValues(string(order.Verb)).Inc()
	return signed, nil
}

// signedOf is an order as it stands in a status.
func signedOf(order *v1alpha1.OrderStatus) (tunnel.Signed, error) {
	signature, err := base64.StdEncoding.DecodeString(order.Signature)
	if err != nil {
		return tunnel.Signed{}, fmt.Errorf("signature: %w", err)
	}
	return tunnel.Signed{Type: tunnel.TypeOrder, KeyID: order.KeyID, Payload: []byte(order.Payload), Signature: signature}, nil
}

// verified reads the order of a Release. Whoever may write a status can put
// anything there; only what this hub signed for this Release counts, all else
// is as if there were no order, and the controller makes a new one.
func (d *Deliverer) verified(release *v1alpha1.Release) (tunnel.Order, bool) {
	if release.Status.Order == nil {
		return tunnel.Order{}, false
	}
	signed, err := signedOf(release.Status.Order)
	if err != nil {
		return tunnel.Order{}, false
	}
	order, err := d.Verify(signed)
	if err != nil || order.Verb != tunnel.VerbApply || order.Release.UID != string(release.UID) ||
		order.Sequence != release.Status.Order.Sequence {
		d.metrics.unverified.Inc()
		return tunnel.Order{}, false
	}
	return order, true
}

// Verify reads an order that this hub signed, with the key of now or another that
// is accepted. tunnel.ErrSignature: it did not.
func (d *Deliverer) Verify(signed tunnel.Signed) (tunnel.Order, error) {
	if err := tunnel.Verify(signed, tunnel.TypeOrder, d.keys); err != nil {
		return tunnel.Order{}, fmt.Errorf("verify an order: %w", err)
	}
	order, err := tunnel.ParseOrder(signed.Payload)
	if err != nil {
		return tunnel.Order{}, err
	}
	if order.Hub != d.options.HubID {
		return tunnel.Order{}, fmt.Errorf("%w: of hub %q", ErrStored, order.Hub)
	}
	return order, nil
}
