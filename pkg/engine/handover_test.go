// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestARenderWantsAnObjectHoweverItsNamespaceIsWritten(t *testing.T) {
	w := newWants(tunnel.Order{Sequence: 1, Policy: tunnel.Policy{Namespace: "shop"}})
	for _, id := range []manifest.Identity{
		{Kind: "ConfigMap", Name: "of-the-order"},
		{Kind: "ConfigMap", Namespace: "other", Name: "written"},
		{Kind: "Namespace", Namespace: "odd", Name: "cluster-scoped"},
	} {
		w.add(id)
	}
	for _, c := range []struct {
		name string
		id   manifest.Identity
		want bool
	}{
		{"none is written, and it is in the order's", manifest.Identity{Kind: "ConfigMap", Namespace: "shop", Name: "of-the-order"}, true},
		{"none is written, and it is in another", manifest.Identity{Kind: "ConfigMap", Namespace: "other", Name: "of-the-order"}, false},
		{"written", manifest.Identity{Kind: "ConfigMap", Namespace: "other", Name: "written"}, true},
		{"written as another", manifest.Identity{Kind: "ConfigMap", Namespace: "shop", Name: "written"}, false},
		{"written for an object of the cluster", manifest.Identity{Kind: "Namespace", Name: "cluster-scoped"}, true},
		{"another name", manifest.Identity{Kind: "ConfigMap", Namespace: "shop", Name: "none"}, false},
	} {
		if got := w.has(c.id); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
