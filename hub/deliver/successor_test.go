// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// removed makes Release web, deletes it while nobody hears of it, and lets it go.
func removed(t *testing.T, f *fixture) {
	t.Helper()
	r := f.order("web", layer("a"), nil)
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
		t.Fatal(err)
	}
	delete(f.releases, r.UID)
	f.ReleaseChanged(r, nil)
	equal(t, "orders without a successor", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
}

// comes makes Release web anew, on a Cluster of that name.
func comes(f *fixture, cluster string) *v1alpha1.Release {
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "next", Namespace: "team", Name: "web"}}
	r.Spec.ClusterRef.Name = cluster
	f.releases[r.UID] = r
	f.ReleaseChanged(nil, r)
	return r
}

func TestARemoveOrderWaitsForTheOrderOfASuccessorOfTheName(t *testing.T) {
	f := newFixture(t)
	removed(t, f)
	_, _, changed := f.Current("c1")
	r := comes(f, "")
	select {
	case <-changed:
	default:
		t.Error("nobody was told that the orders changed")
	}
	equal(t, "orders with a successor", map[string]tunnel.Verb{}, f.listed("c1"))
	equal(t, "keys", []string{Prefix + "c1/web"}, f.keys.names())

	order, err := f.Issue(Intent{Release: r, ClusterUID: "c1", Objects: layer("b")})(0)
	if err != nil {
		t.Fatal(err)
	}
	next := r.DeepCopy()
	next.Status.Sequence, next.Status.Order = order.Sequence, &order
	f.releases[r.UID] = next
	f.ReleaseChanged(r, next)
	equal(t, "orders with its own", map[string]tunnel.Verb{"web": "remove", "next": "apply"}, f.listed("c1"))
}

func TestARemoveOrderIsGivenOutWhenItsSuccessorIsDeleted(t *testing.T) {
	for name, leave := range map[string]func(*fixture, *v1alpha1.Release){
		"and is gone": func(f *fixture, r *v1alpha1.Release) {
			delete(f.releases, r.UID)
			f.ReleaseChanged(r, nil)
		},
		"and is on its way out": func(f *fixture, r *v1alpha1.Release) {
			next, now := r.DeepCopy(), metav1.Now()
			next.DeletionTimestamp = &now
			f.releases[r.UID] = next
			f.ReleaseChanged(r, next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			removed(t, f)
			r := comes(f, "")
			equal(t, "orders with a successor", map[string]tunnel.Verb{}, f.listed("c1"))
			leave(f, r)
			equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		})
	}
}

func TestARemoveOrderWaitsForNobodyOnAnotherCluster(t *testing.T) {
	f := newFixture(t)
	removed(t, f)
	f.mu.Lock()
	f.buried["web"].cluster = "edge-1"
	f.mu.Unlock()
	comes(f, "edge-2")
	equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
}

func TestAReleaseOrderWaitsForNobody(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	if _, err := f.Bury(t.Context(), r, "c1", LettingGo()); err != nil {
		t.Fatal(err)
	}
	delete(f.releases, r.UID)
	f.ReleaseChanged(r, nil)
	comes(f, "")
	equal(t, "orders", map[string]tunnel.Verb{"web": "release"}, f.listed("c1"))
}
