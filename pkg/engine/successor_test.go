// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhoseObjectsPassToARelease(t *testing.T) {
	id := manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "one"}
	const uid = "uid-of-the-object"
	tests := map[string]struct {
		owner  string
		object string
		want   bool
	}{
		"those of its own under the id that the hub had before": {"before/mine", uid, true},
		"not one that was made anew by somebody else":           {"before/mine", "another", false},
		"those of a forgotten one of its name, of either id":    {"before/gone", uid, true},
		"those of a forgotten one of another name":              {"before/other", uid, false},
		"not those of another hub that were never ours":         {"before/nobody", uid, false},
		"what is marked by our hub, and nobody has":             {"now/nobody", uid, true},
		"not those of a Release that the hub has":               {"now/theirs", uid, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rn := &Runner{hub: "now", releases: map[string]*release{}, head: map[string]int64{"mine": 1, "theirs": 1}}
			add := func(uid string, known bool, name string) *release {
				r := &release{runner: rn, uid: uid, ref: tunnel.ReleaseRef{UID: uid, Namespace: "team", Name: name}, objects: map[manifest.Identity]*object{}}
				if known {
					r.objects[id] = &object{id: id, uid: "uid-of-the-object"}
				}
				rn.releases[uid] = r
				return r
			}
			mine := add("mine", true, "web")
			add("gone", true, "web")
			add("other", true, "api")
			add("theirs", true, "web")
			if _, ok := mine.passes(test.owner, id, test.object); ok != test.want {
				t.Errorf("passes: %v, want %v", ok, test.want)
			}
		})
	}
}
