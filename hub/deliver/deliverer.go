// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a Deliverer. HubID, Key, Releases and Keys are required.
type Options struct {
	// HubID stands in each order and head.
	HubID string
	// Key signs.
	Key ed25519.PrivateKey
	// Accept are other keys whose signatures count as ours: those before Key that
	// are not retired, and those announced for after it.
	Accept   []ed25519.PublicKey
	Releases Releases
	Keys     Keys

	Clock      clock.WithTicker
	Registerer prometheus.Registerer
}

// Deliverer keeps the current orders of each Cluster.
type Deliverer struct {
	// Static after New.
	options Options
	// keys whose signatures are ours; the one that signs is the first.
	keys    []ed25519.PublicKey
	clock   clock.WithTicker
	metrics *metrics
	loaded  chan struct{}
	// strike holds the keys to delete; the newest request wakes Run.
	strike chan struct{}

	mu sync.Mutex
	// sets by Cluster UID; all below is guarded by mu.
	sets map[types.UID]*set
	// ordered holds the apply order of each Release, by its UID.
	ordered map[types.UID]tunnel.Order
	// buried holds the last order of each deleted Release, by its UID.
	buried map[types.UID]*Tombstone
	// engraving are the Releases whose last order is being stored: by one at a time, or
	// the store could end up with another than was made last.
	engraving map[types.UID]struct{}
	// newcomers are the Releases that nothing was ordered for yet.
	newcomers map[types.NamespacedName]newcomer
	// struck are keys that are no longer needed, and not deleted yet.
	struck map[string]struct{}
	// targets holds the target of each Cluster that has one, standing the Clusters of
	// each target.
	targets  map[types.UID]string
	standing map[string]map[types.UID]struct{}
	// compared says of each Cluster what its agent was asked to give back.
	compared map[types.UID]*comparison

	// Set before Run.
	onChange   func(clusterUID string)
	onDone     func(release types.UID)
	onCompared func(cluster types.UID, newer []string)
	onLeft     func(ctx context.Context, cluster types.UID, count int32) error
	// See OnForgotten.
	onForgotten func(cluster types.UID, releases []types.UID)
	onNotGone   func(ctx context.Context, cluster types.UID, release tunnel.ReleaseRef, since time.Time) error
}

// New makes a Deliverer. It starts nothing.
func New(options Options) (*Deliverer, error) {
	if options.HubID == "" || len(options.Key) != ed25519.PrivateKeySize || options.Releases == nil || options.Keys == nil {
		return nil, fmt.Errorf("%w: hub id, key, Releases and Keys are required", ErrOptions)
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	public, ok := options.Key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: the key has no Ed25519 public half", ErrOptions)
	}
	d := &Deliverer{
		options: options, keys: append([]ed25519.PublicKey{public}, options.Accept...), clock: options.Clock,
		loaded: make(chan struct{}), strike: make(chan struct{}, 1),
		sets: map[types.UID]*set{}, ordered: map[types.UID]tunnel.Order{}, buried: map[types.UID]*Tombstone{}, newcomers: map[types.NamespacedName]newcomer{},
		struck: map[string]struct{}{}, engraving: map[types.UID]struct{}{}, compared: map[types.UID]*comparison{},
		targets: map[types.UID]string{}, standing: map[string]map[types.UID]struct{}{},
		onChange: func(string) {}, onDone: func(types.UID) {}, onCompared: func(types.UID, []string) {},
		onLeft:      func(context.Context, types.UID, int32) error { return nil },
		onForgotten: func(types.UID, []types.UID) {},
		onNotGone:   func(context.Context, types.UID, tunnel.ReleaseRef, time.Time) error { return nil },
	}
	d.metrics = newMetrics(options.Registerer, d)
	return d, nil
}

// OnDone sets who is told when an agent has carried out the last order of a
// Release. Called before Run; the function must not block.
func (d *Deliverer) OnDone(told func(release types.UID)) { d.onDone = told }

// Watch sets who is told, by its UID, of each Cluster whose orders have changed since
// they were asked for, or whose head is half over. Called before Run; the function
// must not block nor ask for anything.
func (d *Deliverer) Watch(told func(clusterUID string)) { d.onChange = told }

// Loaded is closed when the last orders of deleted Releases are read: no set is
// complete before.
func (d *Deliverer) Loaded() <-chan struct{} { return d.loaded }

// Run reads the stored orders, renews heads, and strikes off what is done or
// too old, until ctx ends.
func (d *Deliverer) Run(ctx context.Context) error {
	if err := d.load(ctx); err != nil {
		return err
	}
	close(d.loaded)
	heads := d.clock.NewTicker(headCheck)
	defer heads.Stop()
	expiry := d.clock.NewTicker(expireEvery)
	defer expiry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-heads.C():
			d.renewHeads()
			d.deleteStruck(ctx) // what failed before is tried again
		case <-expiry.C():
			d.expire(ctx)
		case <-d.strike:
			d.deleteStruck(ctx)
		}
	}
}

func (d *Deliverer) renewHeads() {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sets {
		if s.asked && now.Sub(s.headAt) >= headLife/2 {
			d.changeLocked(s)
		}
	}
}

// Current returns a Cluster's orders, in no order, the signed head over exactly
// these, and a channel that closes at the next change and when the head is half
// over. The list is not changed afterwards. An unknown Cluster has none.
func (d *Deliverer) Current(clusterUID string) ([]tunnel.SignedOrder, tunnel.Signed, <-chan struct{}) {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.setLocked(types.UID(clusterUID))
	if s.list == nil || now.Sub(s.headAt) >= headLife/2 {
		if err := d.buildLocked(types.UID(clusterUID), s, now); err != nil {
			// The JSON of a plain struct does not fail. If it did: nothing is listed and
			// nothing proves it, so that the agent keeps what it has.
			s.list, s.head = nil, tunnel.Signed{}
		}
	}
	s.asked = true
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.list, s.head, s.changed
}

// Allowed says whether an order that the Cluster has now names a digest, and as
// which layer.
func (d *Deliverer) Allowed(clusterUID, digest string) (layer tunnel.Layer, sealed, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, known := d.sets[types.UID(clusterUID)]
	if !known {
		return tunnel.Layer{}, false, false
	}
	if s.layers == nil {
		s.layers = map[string]allowed{}
		for uid := range s.orders {
			if d.buried[uid] != nil {
				continue
			}
			order := d.ordered[uid]
			if order.Objects != nil {
				s.layers[order.Objects.Digest] = allowed{*order.Objects, false}
			}
			if order.Sealed != nil {
				s.layers[order.Sealed.Digest] = allowed{*order.Sealed, true}
			}
			if order.Rules != nil {
				s.layers[order.Rules.Digest] = allowed{*order.Rules, false}
			}
		}
	}
	a, ok := s.layers[digest]
	return a.layer, a.sealed, ok
}

// Ordered is the apply order that a Release has now, if it is one that this hub
// signed.
func (d *Deliverer) Ordered(release types.UID) (tunnel.Order, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	order, ok := d.ordered[release]
	return order, ok
}
