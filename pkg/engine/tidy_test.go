// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestALayerIsKeptAsLongAsAnythingRefersToIt(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	layer := func(digest string) *tunnel.Layer { return &tunnel.Layer{Digest: digest, Size: 1} }
	r := rn.newRelease("one")
	rn.releases[r.uid] = r
	r.order = tunnel.Order{Objects: layer("ordered"), Sealed: layer("ordered sealed"), Rules: layer("ordered rules")}
	r.ruled.Store(&ruled{layer: *layer("rules in use")})
	r.applied = &Render{Objects: *layer("applied"), Sealed: layer("applied sealed")}
	r.attempt = &Render{Objects: *layer("tried")}
	for _, digest := range []string{"of an object", "of another object"} {
		id := manifest.Identity{Kind: "ConfigMap", Name: digest}
		r.objects[id] = &object{id: id, render: &Render{Objects: *layer(digest), Sealed: layer(digest + " sealed")}}
	}
	gone := rn.newRelease("gone")
	gone.order, gone.done = tunnel.Order{Objects: layer("of one that is done")}, true
	rn.releases[gone.uid] = gone
	rn.hold(&Render{Objects: *layer("being staged")})

	keep := rn.keeping()
	for _, digest := range []string{
		"ordered", "ordered sealed", "ordered rules", "rules in use", "applied", "applied sealed", "tried",
		"of an object", "of an object sealed", "of another object", "of another object sealed", "being staged",
	} {
		if !keep(digest) || !rn.wanted(digest) {
			t.Errorf("%q would be deleted", digest)
		}
	}
	for _, digest := range []string{"", "of one that is done", "ordered later", "staged later"} {
		if keep(digest) {
			t.Errorf("%q is kept", digest)
		}
	}
	// While others are deleted one is ordered, and another staged.
	r.order.Objects = layer("ordered later")
	rn.hold(&Render{Objects: *layer("staged later")})
	for _, digest := range []string{"ordered later", "staged later"} {
		if !keep(digest) {
			t.Errorf("%q would be deleted", digest)
		}
	}
	// What is wanted no longer goes with the next look, at the latest.
	if rn.keeping()("ordered") {
		t.Error("what was ordered before is kept")
	}
}
