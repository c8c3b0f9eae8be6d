// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// forgotten is what an agent has no record of any more, of one Release that it applied
// before: the inventory that was stored when it came back. Nil until that is read.
type forgotten struct {
	entries []v1alpha1.InventoryEntry
}

// Forgotten is told of the Releases that a Cluster's agent has no order of when a
// session begins. It does not block. Those that were never applied are new, and not
// forgotten.
func (r *Reporter) Forgotten(_ types.UID, releases []types.UID) {
	for _, uid := range releases {
		release, ok := r.options.Releases.ReleaseByUID(uid)
		if !ok || release.Status.AppliedRef == "" {
			continue
		}
		r.mu.Lock()
		if r.forgotten[uid] == nil {
			r.forgotten[uid] = &forgotten{}
		}
		r.mu.Unlock()
	}
}

// tellForgotten says which objects a Release had and has no longer, of which nobody
// knows but the stored inventory that list is about to replace. It waits for a render
// that was applied in full: that takes over what it has. stored is empty when there is none.
func (r *Reporter) tellForgotten(ctx context.Context, release *v1Release, stored *v1alpha1.ReleaseInventory, list *inventory) error {
	r.mu.Lock()
	f := r.forgotten[release.UID]
	r.mu.Unlock()
	if f == nil {
		return nil
	}
	if f.entries == nil && stored != nil {
		f.entries = stored.Entries // flushed by one at a time
	}
	if list.renderRef == "" {
		return nil
	}
	if left := leftOf(f.entries, list.entries); len(left) > 0 {
		cluster := types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}
		if current, ok := r.options.Clusters.Cluster(cluster); ok {
			if err := r.LeftBehind(ctx, current.UID, 1); err != nil {
				return fmt.Errorf("count what is left behind: %w", err)
			}
		}
		r.warn(About{"Release", types.NamespacedName{Namespace: release.Namespace, Name: release.Name}, release.UID}, v1alpha1.ReasonLeftBehind,
			fmt.Sprintf("the agent came back without its record of this Release, as one that was installed anew: %d objects that the Release had before "+
				"are not in its render any more and are looked after by nobody. They are left on the cluster, to be deleted by hand: %s", len(left), named(left)))
		logr.FromContextOrDiscard(ctx).Info("An agent had no record of what it applied; objects are left behind",
			"release", release.Namespace+"/"+release.Name, "count", len(left), "objects", named(left))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten[release.UID] == f {
		delete(r.forgotten, release.UID)
	}
	return nil
}

// NotGone is told that the last order of a Release, made at since, was carried out by an
// agent that had no record of it: nothing was deleted. The order may have been for
// another target than the one that stands behind the Cluster now; then nothing of it is there.
func (r *Reporter) NotGone(ctx context.Context, cluster types.UID, release tunnel.ReleaseRef, since time.Time) error {
	r.mu.Lock()
	reset, was := r.resets[cluster]
	r.mu.Unlock()
	current, ok := r.options.Clusters.ClusterByUID(cluster)
	if !ok || was && since.Before(reset) {
		return nil
	}
	if err := r.LeftBehind(ctx, cluster, 1); err != nil {
		return err
	}
	name := release.Namespace + "/" + release.Name
	r.warn(About{"Cluster", types.NamespacedName{Namespace: current.Namespace, Name: current.Name}, cluster}, v1alpha1.ReasonLeftBehind,
		fmt.Sprintf("Release %s was deleted, and the agent had no record of it, as one that was installed anew: nothing was removed. "+
			"What it had applied is left on the cluster, to be deleted by hand: it has label %s, and annotation %s ends with %s",
			name, v1alpha1.LabelManaged, v1alpha1.AnnotationOwner, release.UID))
	logr.FromContextOrDiscard(ctx).Info("An agent had no record of a deleted Release; its objects are left behind",
		"release", name, "cluster", current.Namespace+"/"+current.Name)
	return nil
}

type identity struct{ group, kind, namespace, name string }

func identityOf(e *v1alpha1.InventoryEntry) identity {
	return identity{e.Group, e.Kind, e.Namespace, e.Name}
}

// leftOf are the entries of before that now does not have. When all objects that both
// have are others than before, the target is another one, and nothing of before is there.
func leftOf(before, now []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	has := make(map[identity]string, len(now))
	for i := range now {
		has[identityOf(&now[i])] = now[i].UID
	}
	var left []v1alpha1.InventoryEntry
	both, same := 0, 0
	for i := range before {
		uid, ok := has[identityOf(&before[i])]
		switch {
		case !ok:
			left = append(left, before[i])
		case uid == before[i].UID:
			both, same = both+1, same+1
		default:
			both++
		}
	}
	if both > 0 && same == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b v1alpha1.InventoryEntry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})
	return left
}

// named are the first few, as people write them.
func named(entries []v1alpha1.InventoryEntry) string {
	var parts []string
	for i := range entries[:min(len(entries), maxLeftNamed)] {
		e := &entries[i]
		at := e.Name
		if e.Namespace != "" {
			at = e.Namespace + "/" + e.Name
		}
		parts = append(parts, e.Kind+" "+at)
	}
	text := strings.Join(parts, ", ")
	if more := len(entries) - maxLeftNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
