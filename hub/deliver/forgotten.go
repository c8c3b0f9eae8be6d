// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

// An agent says at each session of which Releases it has an order. One that has none of
// a Release has no inventory of it either: that of one whose namespace was deleted went
// with it. It takes over what the render has, and no more; a last order finds nothing to
// do. The hub knows what was there, and says what nobody looks after any more.

// nothing is the fence of an inventory without entries.
var nothing = tunnel.FenceOf(nil)

// OnForgotten sets who is told of what an agent has no record of: listed by the
// Releases that it has an apply order for, at each comparison, new ones among them; and
// carried by that of the last order of a Release, made at since, which was carried out without
// one. The first must not block; an error of the second leaves the order to be reported
// as done once more. Called before Run.
func (d *Deliverer) OnForgotten(listed func(cluster types.UID, releases []types.UID),
	carried func(ctx context.Context, cluster types.UID, release tunnel.ReleaseRef, since time.Time) error) {
	d.onForgotten, d.onNotGone = listed, carried
}

// forgotten marks the last orders that an agent has no record for, and gives the other
// Releases, sorted.
func (d *Deliverer) forgotten(cluster types.UID, have map[string]int64) []types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.setLocked(cluster)
	for uid := range s.buried {
		t := d.buried[uid]
		if _, has := have[string(uid)]; !has && !t.Done && t.Verb == tunnel.VerbRemove && t.last.Fence != "" && t.last.Fence != nothing {
			t.forgotten = true
		}
	}
	var out []types.UID
	for uid := range s.orders {
		if _, has := have[string(uid)]; !has && d.buried[uid] == nil {
			out = append(out, uid)
		}
	}
	slices.SortFunc(out, func(a, b types.UID) int { return strings.Compare(string(a), string(b)) })
	return out
}

// tellForgotten tells, once, of a last order that was carried out by an agent that knew
// nothing of what it is about.
func (d *Deliverer) tellForgotten(ctx context.Context, cluster, release types.UID, sequence int64) error {
	d.mu.Lock()
	t := d.buried[release]
	if t == nil || t.ClusterUID != cluster || sequence < t.Sequence || !t.forgotten {
		d.mu.Unlock()
		return nil
	}
	t.forgotten = false // whoever else reports it meanwhile does not count it again
	ref, at := t.Release, t.At
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := d.onNotGone(ctx, cluster, ref, at)
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.buried[release]; t != nil {
		t.forgotten = true
	}
	return fmt.Errorf("tell what is left of %s/%s: %w", ref.Namespace, ref.Name, err)
}
