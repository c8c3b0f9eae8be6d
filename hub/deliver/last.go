// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

// Last is what the last order of a Release is to say.
type Last struct {
	// Verb is remove or release.
	Verb tunnel.Verb
	// ServiceAccount, Allowed and Propagation say as whom, what and how a remove order
	// deletes.
	ServiceAccount string
	Allowed        []string
	Propagation    string
	// Actions on runs of hooks of the removal, newest last.
	Actions []tunnel.HookAction
	// Fence of the inventory that is to be removed; empty: none is known.
	Fence string
}

// Removal is a remove order that says nothing else.
func Removal() Last { return Last{Verb: tunnel.VerbRemove} }

// LettingGo is a release order.
func LettingGo() Last { return Last{Verb: tunnel.VerbRelease} }

func (l Last) put(order *tunnel.Order) {
	order.ServiceAccount, order.Fence = l.ServiceAccount, l.Fence
	order.Policy.Allowed, order.Policy.Propagation = l.Allowed, l.Propagation
	order.Actions = l.Actions
	if l.ServiceAccount != "" {
		order.Requires = append(order.Requires, tunnel.FeatureImpersonate)
	}
	if len(l.Allowed) > 0 || l.Propagation != "" {
		order.Requires = append(order.Requires, tunnel.FeaturePrune)
	}
	if len(l.Actions) > 0 {
		order.Requires = append(order.Requires, tunnel.FeatureHooks)
	}
}

func lastOf(order tunnel.Order) Last {
	return Last{
		Verb: order.Verb, ServiceAccount: order.ServiceAccount, Fence: order.Fence,
		Allowed: order.Policy.Allowed, Propagation: order.Policy.Propagation, Actions: order.Actions,
	}
}

// Refused is told that an agent did not accept an order of a Release. If that is a
// remove order which is about an inventory that has moved on, it is issued anew: for
// what the agent has now, since the wish to remove it stands. One that was refused
// without an inventory is issued anew, if its Release still waits for it, when it has
// become old: by then the agent may have found it too old. Whatever else was refused
// stays as it is.
func (d *Deliverer) Refused(ctx context.Context, cluster, release types.UID, sequence int64, inventory []tunnel.InventoryEntry) error {
	finish, err := d.claim(release)
	if err != nil {
		return err
	}
	defer finish()
	t, ok := d.Buried(release)
	if !ok || t.ClusterUID != cluster || t.Sequence != sequence || t.Done || t.Verb != tunnel.VerbRemove {
		return nil
	}
	last := t.last
	switch {
	case inventory != nil:
		if last.Fence = tunnel.FenceOf(inventory); last.Fence == t.last.Fence {
			return nil // refused for another reason
		}
	case d.clock.Since(t.At) < staleAfter || !d.waited(release):
		return nil
	}
	now := d.clock.Now()
	order := tunnel.Order{
		Verb: t.Verb, Hub: d.options.HubID, ClusterUID: string(cluster), Release: t.Release,
		Sequence: max(sequence+1, now.UnixMilli()), IssuedAt: now.UTC(), Requires: []string{tunnel.FeatureRemove},
	}
	last.put(&order)
	anew, err := d.engrave(ctx, order, t.cluster)
	if err != nil {
		return fmt.Errorf("issue a remove order anew: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.buried[release] == nil {
		d.struck[anew.key()] = struct{}{} // carried out all the same, meanwhile
		return nil
	}
	d.metrics.reissued.Inc()
	d.buryLocked(anew)
	return nil
}

// claim lets one at a time make the last order of a Release. ErrBusy: another does.
func (d *Deliverer) claim(release types.UID) (finish func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.engraving[release]; busy {
		return nil, fmt.Errorf("%w: %s", ErrBusy, release)
	}
	d.engraving[release] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.engraving, release)
	}, nil
}

// waited says whether a Release that has a last order is still there.
func (d *Deliverer) waited(release types.UID) bool {
	_, alive := d.options.Releases.ReleaseByUID(release)
	return alive
}
