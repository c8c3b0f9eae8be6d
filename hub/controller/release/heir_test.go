// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// family is a hub with the Releases "old" and "new" of one Cluster.
type family struct {
	Cache
	Orders
	Graves
	old, heir *v1alpha1.Release
	orders    map[types.UID]string
	opened    int
}

func (f *family) Release(key types.NamespacedName) (*v1alpha1.Release, bool) {
	for _, r := range []*v1alpha1.Release{f.old, f.heir} {
		if keyOf(r) == key {
			return r, true
		}
	}
	return nil, false
}

func (f *family) Cluster(types.NamespacedName) (*v1alpha1.Cluster, bool) {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "cluster"}}, true
}

func (f *family) ReleaseByUID(types.UID) (*v1alpha1.Release, bool) { return nil, false }

func (f *family) ReleasesByCluster(types.NamespacedName) []*v1alpha1.Release {
	return []*v1alpha1.Release{f.old, f.heir}
}

func (f *family) ReleasesBySource(string, types.NamespacedName) []*v1alpha1.Release { return nil }

func (f *family) Ordered(uid types.UID) (tunnel.Order, bool) {
	digest, ok := f.orders[uid]
	return tunnel.Order{ClusterUID: "cluster", Objects: &tunnel.Layer{Digest: digest}, Policy: tunnel.Policy{Namespace: "shop", PruneOrphaned: true}}, ok
}

func (f *family) Buried(types.UID) (deliver.Tombstone, bool) { return deliver.Tombstone{}, false }

// told has the inventory of "old".
type told struct{ Reporter }

func (told) Inventory(context.Context, types.NamespacedName, types.UID) ([]v1alpha1.InventoryEntry, error) {
	return []v1alpha1.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "db"}, {Kind: "ConfigMap", Namespace: "shop", Name: "cm"}, {Kind: "Namespace", Name: "extra"}}, nil
}

// Open gives a layer of the objects that the digest names.
func (f *family) Open(_ context.Context, digest string) (io.ReadCloser, int64, error) {
	f.opened++
	all := map[string]string{
		"db":    `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"}}`,
		"there": `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","namespace":"elsewhere"}}`,
		"cm":    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"shop"}}`,
		"ns":    `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"extra"}}`,
	}
	if digest == "lost" {
		return nil, 0, store.ErrNotFound
	}
	names := strings.Fields(digest)
	text := `{"format":"` + manifest.FormatObjects + `","count":` + string(rune('0'+len(names))) + "}\n"
	for _, name := range names {
		text += all[name] + "\n"
	}
	return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
}

func TestNothingIsOrderedThatDeletesWhatAReleaseHasThatIsNotOrderedYet(t *testing.T) {
	says := func(reason string) func(*family) {
		return func(f *family) {
			f.heir.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	suspend := func(f *family) { f.heir.Spec.Suspend = true }
	for _, test := range []struct {
		name, next, heir string
		change           func(*family)
		held, prunes     bool
		says             string
		removalGoes      bool
	}{
		{name: "it is suspended", next: "cm ns", heir: "db", change: suspend, held: true, prunes: true, says: `apps/StatefulSet shop/db, which would be deleted, is in the render of Release "new", and that is not ordered yet (it is suspended)`},
		{name: "it waits for a sync", next: "cm ns", heir: "db", change: says("ManualSync"), held: true, prunes: true, says: "(ManualSync)"},
		{name: "it waits for others", next: "cm ns", heir: "db", change: says("WaitingForWave")},
		{name: "it waits for this one", next: "cm ns", heir: "db", change: says("DependencyNotReady")},
		{name: "each waits for the other", next: "cm ns", heir: "db", change: says("HandOverPending")},
		{name: "an object in no namespace", next: "db cm", heir: "ns", change: suspend, held: true, prunes: true, says: "Namespace extra"},
		{name: "its render is lost", next: "cm ns", heir: "lost", change: suspend, held: true, prunes: true, says: "cannot be read"},
		{name: "this one has the object still", next: "db cm ns", heir: "db", change: suspend, prunes: true},
		{name: "the render is ordered already", next: "db cm", heir: "ns", change: func(f *family) { f.heir.Spec.Suspend = true; f.orders["old"] = "db cm" }},
		{name: "it has other objects", next: "cm ns", heir: "there", change: suspend, prunes: true, removalGoes: true},
		{name: "it is ordered", next: "cm ns", heir: "db", change: func(f *family) { f.orders["new"] = "db" }, prunes: true, removalGoes: true},
		{name: "it is being deleted", next: "cm ns", heir: "db", change: func(f *family) { f.heir.DeletionTimestamp = &metav1.Time{} }, prunes: true, removalGoes: true},
		{name: "workloads are kept", next: "cm ns", heir: "db", change: func(f *family) { f.heir.Spec.Suspend = true; f.old.Spec.DeletionPolicy.KeepWorkloads = true }, held: true, prunes: true, removalGoes: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := func(name, digest string) *v1alpha1.Release {
				r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
				r.Status.Render = &v1alpha1.RenderStatus{Objects: v1alpha1.LayerReference{Digest: digest}, TargetNamespace: "shop"}
				return r
			}
			f := &family{old: made("old", test.next), heir: made("new", test.heir), orders: map[types.UID]string{"old": "db cm ns"}}
			test.change(f)
			r := New(Options{Cache: f, Index: f, Orders: f, Graves: f, Reporter: told{}, Layers: f})
			w := &work{key: keyOf(f.old), release: f.old, cluster: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "cluster"}}}
			ordered, _ := f.Ordered("old")
			target := wanted{objects: tunnel.Layer{Digest: test.next}, namespace: "shop"}
			terms, held, err := r.handOver(t.Context(), w, target, deliver.Terms{Policy: tunnel.Policy{PruneOrphaned: true}}, ordered, true)
			if err != nil || (held != nil) != test.held || terms.Policy.PruneOrphaned != test.prunes {
				t.Fatalf("held %v, prunes %v, %v; want %v, %v", held, terms.Policy.PruneOrphaned, err, test.held, test.prunes)
			}
			if held != nil && !strings.Contains(held.Message, test.says) {
				t.Errorf("it says %q, want %q in it", held.Message, test.says)
			}
			pending, err := r.removalPending(t.Context(), keyOf(f.old), f.old)
			if err != nil || (pending == nil) != test.removalGoes {
				t.Errorf("the removal waits for %v, %v; want that it goes: %v", pending, err, test.removalGoes)
			}
			if test.name == "it is ordered" && f.opened > 0 {
				t.Errorf("%d renders were read although all are ordered", f.opened)
			}
		})
	}
}
