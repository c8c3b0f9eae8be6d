// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestARemovalByAnAgentWithoutARecordIsTold(t *testing.T) {
	f := newFixture(t)
	var told, listed []string
	var failing error
	f.OnForgotten(func(_ types.UID, releases []types.UID) {
		for _, uid := range releases {
			listed = append(listed, string(uid))
		}
	}, func(_ context.Context, cluster types.UID, release tunnel.ReleaseRef, since time.Time) error {
		if cluster != "c1" || since.IsZero() {
			t.Errorf("told of %s since %s", cluster, since)
		}
		told = append(told, release.Name)
		return failing
	})
	defer f.run()()
	was := tunnel.FenceOf([]tunnel.InventoryEntry{{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a", UID: "u"}})
	stones := map[string]Tombstone{}
	for name, last := range map[string]Last{
		"held":     {Verb: tunnel.VerbRemove, Fence: was},
		"lost":     {Verb: tunnel.VerbRemove, Fence: was},
		"moved":    {Verb: tunnel.VerbRemove, Fence: was},
		"empty":    {Verb: tunnel.VerbRemove, Fence: tunnel.FenceOf(nil)},
		"never":    {Verb: tunnel.VerbRemove},
		"released": {Verb: tunnel.VerbRelease},
	} {
		r := f.order(name, layer("a"), nil)
		stones[name] = f.bury(t, r, last)
		f.gone(r)
	}
	alive, fresh := f.order("alive", layer("a"), nil), f.order("fresh", layer("a"), nil)
	f.Behind("c1", map[string]int64{"held": stones["held"].Sequence - 1, "alive": alive.Status.Sequence})
	equal(t, "listed", []string{string(fresh.UID)}, listed)

	done := func(name string, sequence int64) error { return f.Done(t.Context(), "c1", types.UID(name), sequence) }
	for _, name := range []string{"held", "empty", "never", "released"} {
		if err := done(name, stones[name].Sequence); err != nil {
			t.Error(err)
		}
	}
	equal(t, "told of what was removed as it should be", []string(nil), told)

	// Until it is told the order stands.
	failing = errors.New("etcd is away")
	if err := done("lost", stones["lost"].Sequence); !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
	if _, ok := f.Buried("lost"); !ok {
		t.Error("the last order went untold")
	}
	failing = nil
	for range 2 {
		if err := done("lost", stones["lost"].Sequence); err != nil {
			t.Error(err)
		}
	}
	equal(t, "told", []string{"lost", "lost"}, told)
	if _, ok := f.Buried("lost"); ok {
		t.Error("the last order is still there")
	}

	// The agent says that it has nothing of the inventory that the order is about. The one
	// that is issued anew is about nothing, and carries that on.
	if err := f.Refused(t.Context(), "c1", "moved", stones["moved"].Sequence, []tunnel.InventoryEntry{}); err != nil {
		t.Fatal(err)
	}
	anew, _ := f.Buried("moved")
	if anew.Sequence <= stones["moved"].Sequence {
		t.Fatal("not issued anew")
	}
	f.Behind("c1", map[string]int64{"moved": anew.Sequence})
	if err := done("moved", anew.Sequence); err != nil {
		t.Fatal(err)
	}
	equal(t, "told", []string{"lost", "lost", "moved"}, told)
}
