// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
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

// TestAMarkOfOurHubIsNobodysOnlyWhenTheHeadProvesIt: what this agent does not know may
// be a Release of another Cluster of the hub that stands for the same cluster.
func TestAMarkOfOurHubIsNobodysOnlyWhenTheHeadProvesIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "one"}
	fresh := tunnel.Head{ExpiresAt: now.Add(time.Minute)}
	tests := map[string]struct {
		heads []tunnel.Head
		knows int64 // the sequence of the Release in the heads
		want  bool
		says  string
	}{
		"not before the first head":                      {says: `belongs to "hub/nobody"`},
		"when it is the only Cluster of its target":      {heads: []tunnel.Head{fresh}, knows: 7, want: true},
		"not when another Cluster stands for its target": {heads: []tunnel.Head{{ExpiresAt: fresh.ExpiresAt, Shared: true}}, knows: 7, says: "another Cluster of this hub stands for the same cluster"},
		"not when another Cluster joined later":          {heads: []tunnel.Head{fresh, {ExpiresAt: fresh.ExpiresAt, Shared: true}}, knows: 7, says: "another Cluster of this hub stands for the same cluster"},
		"again when the other Cluster is gone":           {heads: []tunnel.Head{{ExpiresAt: fresh.ExpiresAt, Shared: true}, fresh}, knows: 7, want: true},
		"not by a head that is over":                     {heads: []tunnel.Head{{ExpiresAt: now}}, knows: 7, says: `belongs to "hub/nobody"`},
		"not by a head that is older than the order":     {heads: []tunnel.Head{fresh}, knows: 6, says: `belongs to "hub/nobody"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, _ := unstarted(t, now)
			r := rn.newRelease("mine")
			r.order = tunnel.Order{Verb: tunnel.VerbApply, Sequence: 7}
			rn.releases["mine"] = r
			for _, head := range test.heads {
				rn.Head(head, map[string]int64{"mine": test.knows})
			}
			from, ok := r.passes("hub/nobody", id, "uid-of-the-object")
			if ok != test.want || from != nil {
				t.Errorf("passes: %v from %v, want %v", ok, from, test.want)
			}
			if got := rn.ownedByOther("hub/nobody").Error(); !ok && !strings.Contains(got, test.says) {
				t.Errorf("it says %q, want %q in it", got, test.says)
			}
		})
	}
}

func TestWhatWasRefusedForAMarkIsTriedAgainAsSoonAsAHeadProvesThatItIsNobodys(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rn, _ := unstarted(t, now)
	later := now.Add(time.Hour)
	add := func(uid, reason string) *release {
		r := rn.newRelease(uid)
		r.order, r.retryAt = tunnel.Order{Verb: tunnel.VerbApply, Sequence: 7}, later
		r.finding = tunnel.Finding{Status: tunnel.False, Reason: reason}
		rn.releases[uid] = r
		return r
	}
	refused, failed := add("refused", v1alpha1.ReasonOwnedByOther), add("failed", v1alpha1.ReasonDryRunFailed)
	orders := map[string]int64{"refused": 7, "failed": 7}
	rn.Head(tunnel.Head{ExpiresAt: later, Shared: true}, orders)
	if !refused.retryAt.Equal(later) {
		t.Error("tried again while another Cluster stands for the target")
	}
	rn.Head(tunnel.Head{ExpiresAt: later}, orders)
	if !refused.retryAt.Equal(now) || !failed.retryAt.Equal(later) {
		t.Errorf("the next attempts are at %s and %s", refused.retryAt, failed.retryAt)
	}
	refused.retryAt = later
	rn.Head(tunnel.Head{ExpiresAt: later}, orders)
	if !refused.retryAt.Equal(later) {
		t.Error("each head brings an attempt, whatever it says")
	}
}
