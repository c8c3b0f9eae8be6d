// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatLeavesIsNotDeletedBeforeReleasesOfTheSameCommitAreRendered(t *testing.T) {
	looked := func(digest string) func(*Reconciler, *family) {
		return func(r *Reconciler, f *family) {
			r.looks.put(keyOf(f.heir), look{uid: f.heir.UID, revision: "c2", digest: digest, namespace: "shop"})
		}
	}
	for _, test := range []struct {
		name, next string
		change     func(*Reconciler, *family)
		// held at once, and prunes at once, and when it has waited.
		held, prunes, prunesLater bool
		says                      string
	}{
		{name: "one was not looked at", next: "cm ns", held: true, prunes: true, says: `apps/StatefulSet shop/db would be deleted, and Release "new", of the same source, is not rendered yet at main@c2`},
		{name: "one was looked at before", next: "cm ns", held: true, prunes: true, says: "not rendered yet", change: func(r *Reconciler, f *family) {
			r.looks.put(keyOf(f.heir), look{uid: f.heir.UID, revision: "c1", digest: "ns"})
		}},
		{name: "its render fails", next: "cm ns", change: looked("")},
		{name: "its render has the object, and it is not ordered yet", next: "cm ns", change: looked("db ns"), held: true, prunes: true, prunesLater: true, says: `is in the render of Release "new"`},
		{name: "its render has the object, and it is ordered", next: "cm ns", change: func(r *Reconciler, f *family) { looked("db")(r, f); f.orders["new"] = "db" }, prunes: true, prunesLater: true},
		{name: "its render has other objects", next: "cm ns", change: looked("cm"), prunes: true, prunesLater: true},
		{name: "nothing leaves", next: "db cm ns", prunes: true, prunesLater: true},
		{name: "it comes from another source", next: "cm ns", change: func(_ *Reconciler, f *family) { f.heir.Spec.Source.Name = "other" }, prunes: true, prunesLater: true},
		{name: "it is suspended", next: "cm ns", change: func(_ *Reconciler, f *family) { f.heir.Spec.Suspend = true }, prunes: true, prunesLater: true},
		{name: "it is being deleted", next: "cm ns", change: func(_ *Reconciler, f *family) { f.heir.DeletionTimestamp = &metav1.Time{} }, prunes: true, prunesLater: true},
		{name: "the order that prunes is out", next: "cm ns", change: func(_ *Reconciler, f *family) { f.orders["old"] = "cm ns" }, prunes: true, prunesLater: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := func(name string) *v1alpha1.Release {
				return &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
			}
			f := &family{old: made("old"), heir: made("new"), orders: map[types.UID]string{"old": "db cm ns", "new": "ns"}}
			clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
			r := New(Options{Cache: f, Index: f, Orders: f, Graves: f, Reporter: told{}, Layers: f, Clock: clock})
			if test.change != nil {
				test.change(r, f)
			}
			n := &note{}
			ask := func() (*work, deliver.Terms, *report.Finding) {
				t.Helper()
				w := &work{
					key: keyOf(f.old), release: f.old, note: n, revision: source.Revision{Key: "c2", Display: "main@c2"},
					cluster: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "cluster"}},
				}
				ordered, _ := f.Ordered("old")
				target := wanted{objects: tunnel.Layer{Digest: test.next}, namespace: "shop"}
				terms, held, err := r.handOver(t.Context(), w, target, deliver.Terms{Policy: tunnel.Policy{PruneOrphaned: true}}, ordered, true)
				if err != nil {
					t.Fatal(err)
				}
				return w, terms, held
			}
			w, terms, held := ask()
			if (held != nil) != test.held || terms.Policy.PruneOrphaned != test.prunes {
				t.Fatalf("held %v, prunes %v; want %v, %v", held, terms.Policy.PruneOrphaned, test.held, test.prunes)
			}
			if held != nil && (held.Reason != v1alpha1.ReasonHandOver || !strings.Contains(held.Message, test.says)) {
				t.Errorf("it says %+v, want %q in it", held, test.says)
			}
			if held != nil && r.next(w) > siblingQuiet {
				t.Errorf("it is looked at again after %s", r.next(w))
			}
			clock.SetTime(clock.Now().Add(siblingQuiet))
			if w, _, held := ask(); held != nil && w.hush {
				t.Error("what takes longer is not told")
			}
			clock.SetTime(clock.Now().Add(siblingWait))
			if _, terms, _ := ask(); terms.Policy.PruneOrphaned != test.prunesLater {
				t.Errorf("prunes in the end: %v", terms.Policy.PruneOrphaned)
			}
			looked("cm")(r, f)
			if _, terms, held := ask(); held != nil || !terms.Policy.PruneOrphaned {
				t.Errorf("when it has been rendered without the object: held %v, prunes %v", held, terms.Policy.PruneOrphaned)
			}
		})
	}
}
