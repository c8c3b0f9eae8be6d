// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Orders carry the wave of their Release on its Cluster, so that an edge alone keeps
// the order that the hub would: a Release is applied when those of all lower waves have
// what they were ordered and are healthy. It only ever waits for lower waves, so no two
// wait for each other.

// waveRecheck is how often a Release that waits looks by itself, should word be missed.
const waveRecheck = 10 * time.Minute

// waves is what a Runner knows of Releases that wait for others.
type waves struct {
	// used: an order has a wave; before, nobody needs to look.
	used    atomic.Bool
	mu      sync.Mutex
	waiting map[*release]bool // guarded by mu
}

// learn takes note of the wave of an order.
func (w *waves) learn(order tunnel.Order) {
	if order.Wave != 0 {
		w.used.Store(true)
	}
}

func (w *waves) add(r *release) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[*release]bool{}
	}
	w.waiting[r] = true
}

func (w *waves) remove(r *release) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, r)
}

// changed tells those that wait to look again. No release's mu may be held.
func (w *waves) changed() {
	if !w.used.Load() {
		return
	}
	w.mu.Lock()
	all := make([]*release, 0, len(w.waiting))
	for r := range w.waiting {
		all = append(all, r)
	}
	w.mu.Unlock()
	for _, r := range all {
		r.mu.Lock()
		r.wakeLocked()
		r.mu.Unlock()
	}
}

// awaitWaves waits until no Release of a lower wave has anything to do. An order that
// brings nothing new does not wait.
func (r *release) awaitWaves(ctx context.Context, order tunnel.Order) error {
	w := &r.runner.waves
	if order.Verb != tunnel.VerbApply || !w.used.Load() || r.hasAll(order) || r.lowerWave(order) == "" {
		return nil
	}
	w.add(r)
	defer w.remove(r)
	// It may take long, and an edge that stands alone must not forget what it is to do.
	if err := r.save(ctx); err != nil && ctx.Err() == nil {
		r.log.Error(err, "order not written down before it waits, will be tried again")
	}
	for {
		met, err := r.waitUntil(ctx, order, r.now().Add(waveRecheck), func() bool {
			who := r.lowerWave(order)
			r.showWaiting(who)
			return who == ""
		})
		if err != nil || met {
			return err
		}
	}
}

// hasAll says whether the render of an order is there, hooks and all.
func (r *release) hasAll(order tunnel.Order) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied != nil && order.Objects != nil && r.applied.Objects == *order.Objects && !order.Force && !r.roundOpenLocked(order)
}

// lowerWave says what a Release waits for; empty: nothing. Of several it names the
// first.
func (r *release) lowerWave(order tunnel.Order) string {
	r.runner.mu.Lock()
	head := r.runner.head
	r.runner.mu.Unlock()
	type waited struct {
		wave      int32
		name, why string
	}
	var all []waited
	for _, other := range r.runner.all() {
		if other == r {
			continue
		}
		_, known := head[other.uid]
		other.mu.Lock()
		o := other.order
		if (head == nil || known) && o.Verb == tunnel.VerbApply && o.Sequence > 0 && o.Wave < order.Wave && !other.done {
			why := ""
			switch {
			case other.applied == nil, other.applied.Sequence < o.Sequence:
				why = "it has not applied its newest order"
			case !other.ready:
				why = "it is not applied and healthy"
			}
			if why != "" {
				all = append(all, waited{o.Wave, other.ref.Namespace + "/" + other.ref.Name, why})
			}
		}
		other.mu.Unlock()
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b waited) int { return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.name, b.name)) })
	message := fmt.Sprintf("waits for Release %s of wave %d: %s", all[0].name, all[0].wave, all[0].why)
	return clip(counted(message, len(all)), maxMessage)
}

// showWaiting tells what a Release waits for.
func (r *release) showWaiting(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	finding := tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonWaitingForWave, Message: who}
	if who == "" || r.finding == finding {
		return
	}
	r.finding, r.settled, r.dirty = finding, false, true
}

// tellReady notes whether a Release was as it should be when it was last reported.
func (r *release) tellReady(out tunnel.Report) {
	r.mu.Lock()
	// What somebody suspended would be waited for in vain.
	r.ready = out.Applied.Status == tunnel.True && (out.Healthy.Status == tunnel.True || out.Healthy.Reason == v1alpha1.ReasonSuspended)
	r.mu.Unlock()
	r.runner.waves.changed()
}
