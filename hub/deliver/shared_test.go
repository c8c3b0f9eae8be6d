// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// standsFor is a Cluster whose agent has said where it is; an empty target: not yet.
func standsFor(uid, target string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: uid, UID: types.UID(uid)}}
	c.Status.ClusterUID = target
	return c
}

func TestAHeadSaysWhetherAnotherClusterStandsForTheSameTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var told []string
		f.Watch(func(cluster string) { told = append(told, cluster) })
		shared := func(cluster string) bool {
			t.Helper()
			f.listed(cluster)
			_, signed, _ := f.Current(cluster)
			head, err := tunnel.ParseHead(signed.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if named := bytes.Contains(signed.Payload, []byte("shared")); named != head.Shared {
				t.Errorf("the payload %s names it, though it is %v", signed.Payload, head.Shared)
			}
			return head.Shared
		}
		// change changes a Cluster; the agents of those are told.
		change := func(old, next *v1alpha1.Cluster, want ...string) {
			t.Helper()
			for _, cluster := range []string{"c1", "c2", "c3"} {
				f.Current(cluster) // as who is connected asks
			}
			told = []string{}
			f.ClusterChanged(old, next)
			got := map[string]bool{}
			for _, cluster := range told {
				got[cluster] = true
			}
			wanted := map[string]bool{}
			for _, cluster := range want {
				wanted[cluster] = true
			}
			equal(t, "told", wanted, got)
		}
		heads := func(what string, one, two, three bool) {
			t.Helper()
			equal(t, what, [3]bool{one, two, three}, [3]bool{shared("c1"), shared("c2"), shared("c3")})
		}

		first, joining, second := standsFor("c1", "target"), standsFor("c2", ""), standsFor("c2", "target")
		change(nil, first, "c1")
		change(nil, joining)
		change(nil, standsFor("c3", ""))
		heads("one Cluster", false, false, false)
		f.order("r", layer("a"), nil)
		_, _, changed := f.Current("c1")
		change(joining, second, "c1", "c2")
		select {
		case <-changed:
		default:
			t.Error("who waits for a change of the first is not told")
		}
		heads("a second joins later", true, true, false)
		change(second, second)
		change(standsFor("c3", ""), standsFor("c3", "target"), "c3")
		heads("a third", true, true, true)
		change(standsFor("c3", "target"), standsFor("c3", "another"), "c3")
		heads("the third stands for another", true, true, false)
		change(second, nil, "c1", "c2")
		heads("the second is gone", false, false, false)
		change(nil, standsFor("c2", "another"), "c2", "c3")
		heads("made again for another target", false, true, true)
	})
}
