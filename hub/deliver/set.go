// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// set is what one Cluster is to do. Guarded by the Deliverer's lock.
type set struct {
	cluster types.UID
	// orders of living Releases, by UID: as stored in their status.
	orders map[types.UID]*v1alpha1.OrderStatus
	// buried are the Releases whose last order this Cluster has.
	buried map[types.UID]struct{}

	// Made when somebody asks, dropped at a change.
	list   []tunnel.SignedOrder
	layers map[string]allowed
	head   tunnel.Signed
	headAt time.Time
	// asked: somebody asked since the last change.
	asked bool
	// changed is closed at the next change; nil: nobody waits for one.
	changed chan struct{}
}

type allowed struct {
	layer  tunnel.Layer
	sealed bool
}

func (d *Deliverer) setLocked(cluster types.UID) *set {
	s := d.sets[cluster]
	if s == nil {
		s = &set{cluster: cluster, orders: map[types.UID]*v1alpha1.OrderStatus{}, buried: map[types.UID]struct{}{}}
		d.sets[cluster] = s
	}
	return s
}

// changeLocked drops what was made of the set and tells who waits.
func (d *Deliverer) changeLocked(s *set) {
	s.list, s.layers = nil, nil
	if s.asked {
		s.asked = false
		d.onChange(string(s.cluster))
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// buildLocked makes list and head. A Release that has a last order is listed
// with that one alone: its apply order must never come back.
func (d *Deliverer) buildLocked(cluster types.UID, s *set, now time.Time) error {
	list := make([]tunnel.SignedOrder, 0, len(s.orders)+len(s.buried))
	sequences := make(map[string]int64, cap(list))
	for uid, order := range s.orders {
		if d.buried[uid] != nil {
			continue
		}
		signed, err := signedOf(order)
		if err != nil {
			continue // was verified when it came in; it cannot be unreadable now
		}
		list = append(list, tunnel.SignedOrder{UID: string(uid), Sequence: order.Sequence, Signed: signed})
		sequences[string(uid)] = order.Sequence
	}
	for uid := range s.buried {
		t := d.buried[uid]
		if d.withheldLocked(t) {
			continue
		}
		list = append(list, tunnel.SignedOrder{UID: string(uid), Sequence: t.Sequence, Signed: t.Signed})
		sequences[string(uid)] = t.Sequence
	}
	head, err := tunnel.SignJSON(tunnel.TypeHead, tunnel.Head{
		Hub: d.options.HubID, ClusterUID: string(cluster), Count: len(list), Hash: tunnel.HashOrders(sequences),
		IssuedAt: now.UTC(), ExpiresAt: now.UTC().Add(headLife),
		Shared: d.sharedLocked(cluster),
	}, d.options.Key)
	if err != nil {
		return err
	}
	s.list, s.head, s.headAt = list, head, now
	d.metrics.heads.Inc()
	return nil
}

// ReleaseChanged is told of each change of a Release in the cache (a nil next:
// it is gone). It never blocks.
func (d *Deliverer) ReleaseChanged(old, next *v1alpha1.Release) {
	if next == nil {
		d.releaseGone(old)
		return
	}
	leaves := next.DeletionTimestamp != nil
	if old != nil && old.UID == next.UID && sameOrder(old.Status.Order, next.Status.Order) && leaves == (old.DeletionTimestamp != nil) {
		return
	}
	order, ok := d.verified(next)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arriveLocked(next, !ok && !leaves)
	if before, had := d.ordered[next.UID]; had && (!ok || before.ClusterUID != order.ClusterUID) {
		d.dropLocked(next.UID, types.UID(before.ClusterUID))
	}
	if !ok {
		return
	}
	s := d.setLocked(types.UID(order.ClusterUID))
	s.orders[next.UID] = next.Status.Order
	d.ordered[next.UID] = order
	d.changeLocked(s)
}

// dropLocked takes a Release's apply order out of a set.
func (d *Deliverer) dropLocked(release, cluster types.UID) {
	delete(d.ordered, release)
	if s := d.sets[cluster]; s != nil {
		delete(s.orders, release)
		d.changeLocked(s)
	}
}

func (d *Deliverer) releaseGone(gone *v1alpha1.Release) {
	release := gone.UID
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arriveLocked(gone, false)
	if order, ok := d.ordered[release]; ok {
		d.dropLocked(release, types.UID(order.ClusterUID))
	}
	if t := d.buried[release]; t != nil && t.Done {
		d.exhumeLocked(t)
	}
}

func sameOrder(a, b *v1alpha1.OrderStatus) bool {
	return a == b || a != nil && b != nil && *a == *b
}
