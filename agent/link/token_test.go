// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestATokenOfAnotherClusterIsTakenAtOnceAlsoWhenItComesAfterTheHubHasRefused(t *testing.T) {
	r := setUp(t)
	slow := link.QuickBackoff()
	slow.RefusedMin, slow.RefusedMax = time.Hour, 2*time.Hour
	r.options.Backoff = &slow
	r.order(t, "a", 1)
	given := r.tokens()
	a := &agent{registry: newRegistry(&r.options)}
	r.run(t)
	r.engine.wait(t, "an order", func() bool { return r.engine.have["a"] == 1 })
	if _, _, err := r.AddCluster("fleet", "edge-2", r.url, time.Hour); err != nil { // a hub with none is a hub to be restored
		t.Fatal(err)
	}
	r.DeleteCluster(r.id.UID)
	again(t, r)
	eventually(t, "a refusal", func() bool {
		n, ok := a.value(t, "convoy_link_refused", tunnel.ReasonClusterUnknown)
		return ok && n == 1
	})
	// The Cluster is made anew, and somebody applies the manifests that let it in.
	other, theirs, err := r.AddCluster("fleet", "edge-1", r.url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	given.put(theirs)
	eventually(t, "the join", func() bool { got := r.store.get(); return got.ClusterUID == other.UID && got.Next == nil })
}
