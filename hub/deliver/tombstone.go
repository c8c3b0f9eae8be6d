// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Tombstone is the last order of a deleted Release.
type Tombstone struct {
	ClusterUID types.UID
	Release    tunnel.ReleaseRef
	Verb       tunnel.Verb
	Sequence   int64
	Signed     tunnel.Signed
	// At is when it was made.
	At time.Time
	// Done: the agent has carried it out; the Release is still there.
	Done bool

	// forgotten: the agent came without a record of the Release, though the order is about
	// objects that were reported.
	forgotten bool
	// cluster is the name of its Cluster; empty after a restart.
	cluster string
	// last is what it says.
	last Last
}

// Says whether the last order says this, whichever inventory it is about.
func (t *Tombstone) Says(last Last) bool {
	return t.last.Verb == last.Verb && t.last.ServiceAccount == last.ServiceAccount && t.last.Propagation == last.Propagation &&
		slices.Equal(t.last.Allowed, last.Allowed) && slices.Equal(t.last.Actions, last.Actions)
}

// Actions on hooks that the last order carries, newest last; not to be changed.
func (t *Tombstone) Actions() []tunnel.HookAction { return t.last.Actions }

func (t *Tombstone) key() string { return Prefix + string(t.ClusterUID) + "/" + t.Release.UID }

// Buried is the last order of a Release, if it has one.
func (d *Deliverer) Buried(release types.UID) (Tombstone, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.buried[release]; t != nil {
		return *t, true
	}
	return Tombstone{}, false
}

// LastOrder is the sequence of the last order of a Release; 0: it has none.
func (d *Deliverer) LastOrder(release types.UID) int64 {
	t, _ := d.Buried(release)
	return t.Sequence
}

// Waiting counts the last orders that a Cluster has not carried out.
func (d *Deliverer) Waiting(cluster types.UID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sets[cluster]
	if s == nil {
		return 0
	}
	count := 0
	for uid := range s.buried {
		if !d.buried[uid].Done {
			count++
		}
	}
	return count
}

// Bury makes and stores the last order of a Release: remove or release. It is
// in etcd when Bury returns, so that the Release may go. cluster is the UID of the
// Cluster that it is for: that of now, though what runs there may have been ordered
// under one that was deleted. A Release that has one that says the same keeps it.
// ErrNothingOrdered: there is nothing to undo.
func (d *Deliverer) Bury(ctx context.Context, release *v1alpha1.Release, cluster types.UID, last Last) (Tombstone, error) {
	finish, err := d.claim(release.UID)
	if err != nil {
		return Tombstone{}, err
	}
	defer finish()
	sequence := release.Status.Sequence
	if buried, ok := d.Buried(release.UID); ok {
		if buried.Says(last) {
			return buried, nil
		}
		sequence, cluster = max(sequence, buried.Sequence), buried.ClusterUID
	} else if _, ok := d.Ordered(release.UID); !ok {
		return Tombstone{}, ErrNothingOrdered
	}
	order := d.order(release, cluster, last.Verb, sequence)
	last.put(&order)
	t, err := d.engrave(ctx, order, release.Spec.ClusterRef.Name)
	if err != nil {
		return Tombstone{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.struck, t.key())
	d.buryLocked(t)
	return *t, nil
}

// engrave signs and stores a last order.
func (d *Deliverer) engrave(ctx context.Context, order tunnel.Order, cluster string) (*Tombstone, error) {
	signed, err := d.sign(order)
	if err != nil {
		return nil, err
	}
	t := &Tombstone{
		ClusterUID: types.UID(order.ClusterUID), Release: order.Release, Verb: order.Verb, Sequence: order.Sequence,
		Signed: signed, At: order.IssuedAt, cluster: cluster, last: lastOf(order),
	}
	value, err := json.Marshal(signed)
	if err != nil {
		return nil, fmt.Errorf("encode the last order: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := d.options.Keys.Put(ctx, t.key(), string(value)); err != nil {
		return nil, fmt.Errorf("store the last order: %w", err)
	}
	return t, nil
}

func (d *Deliverer) buryLocked(t *Tombstone) {
	uid := types.UID(t.Release.UID)
	if before := d.buried[uid]; before != nil && before.ClusterUID == t.ClusterUID {
		t.forgotten = t.forgotten || before.forgotten
	}
	d.buried[uid] = t
	s := d.setLocked(t.ClusterUID)
	s.buried[uid] = struct{}{}
	d.changeLocked(s)
}

// exhumeLocked forgets a tombstone and lets Run delete its key.
func (d *Deliverer) exhumeLocked(t *Tombstone) {
	uid := types.UID(t.Release.UID)
	delete(d.buried, uid)
	if s := d.sets[t.ClusterUID]; s != nil {
		delete(s.buried, uid)
		d.changeLocked(s)
	}
	d.struck[t.key()] = struct{}{}
	select {
	case d.strike <- struct{}{}:
	default:
	}
}

// Done is told when the Cluster's agent has carried out the last order of a
// Release. The order goes when the Release has gone: until then nothing else is
// listed for it, or the apply order would come back.
func (d *Deliverer) Done(ctx context.Context, cluster, release types.UID, sequence int64) error {
	if err := d.tellForgotten(ctx, cluster, release, sequence); err != nil {
		return err
	}
	_, alive := d.options.Releases.ReleaseByUID(release)
	d.mu.Lock()
	t := d.buried[release]
	if t == nil || t.ClusterUID != cluster || sequence < t.Sequence {
		d.mu.Unlock()
		return nil
	}
	// The cache may have dropped the Release and not told of it yet: its apply order
	// is still listed then, and only the last order hides it.
	if _, listed := d.ordered[release]; alive || listed {
		t.Done = true
	} else {
		d.exhumeLocked(t)
	}
	d.metrics.done.Inc()
	d.mu.Unlock()
	d.onDone(release)
	return nil
}

// Forget drops all that is kept for a Cluster that was deleted: no agent can
// come back under its UID.
func (d *Deliverer) Forget(ctx context.Context, cluster types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := d.options.Keys.Delete(ctx, Prefix+string(cluster)+"/", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("delete the last orders of a deleted Cluster: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.compared, cluster)
	s := d.sets[cluster]
	if s == nil {
		return nil
	}
	for uid := range s.buried {
		delete(d.buried, uid)
	}
	clear(s.buried)
	d.changeLocked(s)
	if len(s.orders) == 0 {
		delete(d.sets, cluster)
	}
	return nil
}

// deleteStruck deletes the keys that are no longer needed. What fails stays for
// the next time; an order that is sent once more is carried out once more.
func (d *Deliverer) deleteStruck(ctx context.Context) {
	d.mu.Lock()
	keys := make([]string, 0, len(d.struck))
	for key := range d.struck {
		keys = append(keys, key)
	}
	d.mu.Unlock()
	for _, key := range keys {
		asked, cancel := context.WithTimeout(ctx, storeTimeout)
		_, err := d.options.Keys.Delete(asked, key)
		cancel()
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "An order that was carried out is still stored")
			return
		}
		d.mu.Lock()
		delete(d.struck, key)
		d.mu.Unlock()
	}
}

// OnLeft sets who is told how many Releases' objects were left behind on a Cluster,
// before that is forgotten here; an error leaves it to the next time. Called before
// Run.
func (d *Deliverer) OnLeft(told func(ctx context.Context, cluster types.UID, count int32) error) {
	d.onLeft = told
}

// expire gives up on agents that did not come back. What they left behind is told
// first: a crash between the two counts it twice rather than never.
func (d *Deliverer) expire(ctx context.Context) {
	now := d.clock.Now()
	left := map[types.UID][]*Tombstone{}
	d.mu.Lock()
	for uid, t := range d.buried {
		if _, listed := d.ordered[uid]; listed || t.Done || now.Sub(t.At) <= keepBuried {
			continue // one whose Release is still there waits as long as that does
		}
		left[t.ClusterUID] = append(left[t.ClusterUID], t)
	}
	d.mu.Unlock()
	log := logr.FromContextOrDiscard(ctx)
	for cluster, graves := range left {
		count := int32(0)
		for _, t := range graves {
			if t.Verb == tunnel.VerbRemove {
				count++
			}
		}
		if count > 0 {
			asked, cancel := context.WithTimeout(ctx, storeTimeout)
			err := d.onLeft(asked, cluster, count)
			cancel()
			if err != nil {
				log.Error(err, "It could not be recorded that objects are left behind", "count", count)
				continue
			}
		}
		for _, t := range graves {
			log.Info("The last order of a deleted Release is given up: its cluster was away too long",
				"release", t.Release.Namespace+"/"+t.Release.Name, "verb", string(t.Verb), "sequence", t.Sequence)
		}
		d.giveUp(graves)
	}
}

func (d *Deliverer) giveUp(graves []*Tombstone) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range graves {
		if d.buried[types.UID(t.Release.UID)] == t {
			d.metrics.expired.Inc()
			d.exhumeLocked(t)
		}
	}
}

// load reads the stored orders in pages. One that cannot be read is left where
// it is, and named: it is somebody's last order.
func (d *Deliverer) load(ctx context.Context) error {
	from, end := Prefix, clientv3.GetPrefixRangeEnd(Prefix)
	for {
		asked, cancel := context.WithTimeout(ctx, storeTimeout)
		page, err := d.options.Keys.Get(asked, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		cancel()
		if err != nil {
			return fmt.Errorf("read the stored orders: %w", err)
		}
		for _, kv := range page.Kvs {
			t, err := d.stored(string(kv.Key), kv.Value)
			if err != nil {
				logr.FromContextOrDiscard(ctx).Error(err, "A stored order is ignored", "key", string(kv.Key))
				continue
			}
			d.mu.Lock()
			d.buryLocked(t)
			d.mu.Unlock()
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

func (d *Deliverer) stored(key string, value []byte) (*Tombstone, error) {
	var signed tunnel.Signed
	if len(value) > maxStored {
		return nil, fmt.Errorf("%w: %d bytes", ErrStored, len(value))
	}
	if err := json.Unmarshal(value, &signed); err != nil {
		return nil, errors.Join(ErrStored, err)
	}
	order, err := d.Verify(signed)
	if err != nil {
		return nil, errors.Join(ErrStored, err)
	}
	t := &Tombstone{
		ClusterUID: types.UID(order.ClusterUID), Release: order.Release, Verb: order.Verb,
		Sequence: order.Sequence, Signed: signed, At: order.IssuedAt, last: lastOf(order),
	}
	if order.Verb == tunnel.VerbApply || t.key() != key {
		return nil, fmt.Errorf("%w: the order is not the one that the key names", ErrStored)
	}
	return t, nil
}
