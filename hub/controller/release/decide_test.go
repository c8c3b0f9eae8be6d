// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhenThereIsANewOrder(t *testing.T) {
	automatic, manual := tunnel.Policy{Automatic: true}, tunnel.Policy{}
	old, fresh := tunnel.Layer{Digest: "old"}, tunnel.Layer{Digest: "new"}
	has := func(policy tunnel.Policy) *tunnel.Order {
		return &tunnel.Order{ClusterUID: "c1", Objects: &old, Policy: policy}
	}
	tests := map[string]struct {
		asked   bool
		policy  tunnel.Policy
		render  tunnel.Layer
		ordered *tunnel.Order
		order   string // digest of the new order, "" for none
		manual  bool
	}{
		"the first render is ordered":                                 {policy: automatic, render: fresh, order: "new"},
		"the first render waits in manual mode":                       {policy: manual, render: fresh, manual: true},
		"the first render is ordered in manual mode when asked":       {asked: true, policy: manual, render: fresh, order: "new"},
		"the same again is no order":                                  {policy: automatic, render: old, ordered: has(automatic)},
		"another digest is ordered":                                   {policy: automatic, render: fresh, ordered: has(automatic), order: "new"},
		"another digest waits in manual mode":                         {policy: manual, render: fresh, ordered: has(manual), manual: true},
		"another digest is ordered in manual mode when asked":         {asked: true, policy: manual, render: fresh, ordered: has(manual), order: "new"},
		"another policy orders the same digest":                       {policy: tunnel.Policy{Automatic: true, Replace: true}, render: old, ordered: has(automatic), order: "old"},
		"a sync orders the same digest again":                         {asked: true, policy: automatic, render: old, ordered: has(automatic), order: "old"},
		"another policy in manual mode goes with the next order":      {policy: tunnel.Policy{Replace: true}, render: old, ordered: has(manual)},
		"another policy and digest in manual mode wait":               {policy: tunnel.Policy{Replace: true}, render: fresh, ordered: has(manual), manual: true},
		"turning manual orders what is enforced":                      {policy: manual, render: old, ordered: has(automatic), order: "old"},
		"turning manual with another digest orders what is enforced":  {policy: manual, render: fresh, ordered: has(automatic), order: "old", manual: true},
		"turning automatic orders what waited":                        {policy: automatic, render: fresh, ordered: has(manual), order: "new"},
		"a Cluster made anew gets an order of its own":                {policy: automatic, render: old, ordered: &tunnel.Order{ClusterUID: "c0", Objects: &old, Policy: automatic}, order: "old"},
		"a Cluster made anew gets none in manual mode without asking": {policy: manual, render: old, ordered: &tunnel.Order{ClusterUID: "c0", Objects: &old, Policy: manual}, manual: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var ordered tunnel.Order
			if test.ordered != nil {
				ordered = *test.ordered
			}
			d := decide(test.asked, deliver.Terms{Policy: test.policy}, "c1", wanted{objects: test.render}, ordered, test.ordered != nil)
			got := ""
			if d.order != nil {
				got = d.order.objects.Digest
			}
			if got != test.order || d.manual != test.manual {
				t.Errorf("order of %q, manual %v; want %q, %v", got, d.manual, test.order, test.manual)
			}
		})
	}
}

func TestWhatAClusterThatIsAwayHoldsBack(t *testing.T) {
	applied := v1alpha1.ReleaseStatus{AppliedRef: "a", RenderRef: "a", InputsHash: "h"}
	policy := policyOf(&v1alpha1.Release{}, nil)
	tests := map[string]struct {
		status  v1alpha1.ReleaseStatus
		inputs  string
		request request
		ordered *tunnel.Order
		want    bool
	}{
		"nothing was ever applied":             {v1alpha1.ReleaseStatus{}, "h", request{}, nil, true},
		"what is applied is the newest":        {applied, "h", request{}, &tunnel.Order{Policy: policy}, false},
		"the inputs changed":                   {applied, "h2", request{}, &tunnel.Order{Policy: policy}, true},
		"the source cannot be looked at":       {applied, "", request{}, &tunnel.Order{Policy: policy}, false},
		"the order is not applied yet":         {v1alpha1.ReleaseStatus{AppliedRef: "a", RenderRef: "b", InputsHash: "h"}, "h", request{}, &tunnel.Order{Policy: policy}, true},
		"a sync was asked for":                 {applied, "h", request{sync: "now"}, &tunnel.Order{Policy: policy}, true},
		"the policy changed":                   {applied, "h", request{}, &tunnel.Order{}, true},
		"the order is not one of this hub any": {applied, "h", request{}, nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &work{release: &v1alpha1.Release{Status: test.status}, inputs: test.inputs, request: test.request}
			var ordered tunnel.Order
			if test.ordered != nil {
				ordered = *test.ordered
			}
			if got := waits(w, deliver.Terms{Policy: policy}, ordered, test.ordered != nil); got != test.want {
				t.Errorf("waits is %v, want %v", got, test.want)
			}
		})
	}
}

func TestThePolicyOfAnOrderFollowsTheSpec(t *testing.T) {
	defaults := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	if diff := cmp.Diff(tunnel.Policy{Automatic: true, TimeoutSeconds: 300, PruneOrphaned: true, Namespace: "team"}, policyOf(defaults, nil)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	all := defaults.DeepCopy()
	all.Spec.SyncPolicy = v1alpha1.SyncPolicy{
		Automatic: ptr.To(false), Timeout: &metav1.Duration{Duration: 10 * time.Second},
		Conflicts: v1alpha1.ConflictsForce, Immutable: v1alpha1.ImmutableReplace, Prune: v1alpha1.PrunePolicy{Orphaned: ptr.To(false)},
	}
	if diff := cmp.Diff(tunnel.Policy{TimeoutSeconds: 10, ForceConflicts: true, Replace: true, Namespace: "team"}, policyOf(all, &v1alpha1.RenderStatus{})); diff != "" {
		t.Errorf("all set (-want +got):\n%s", diff)
	}
}

func TestARemovalThatIsStuckNamesWhatTheAgentSaidOfIt(t *testing.T) {
	held := v1alpha1.ObjectException{Kind: "ConfigMap", Namespace: "team", Name: "held", Reason: "PruneFailed", Message: "held by finalizer example.com/x"}
	for name, c := range map[string]struct {
		status v1alpha1.ReleaseStatus
		want   string
	}{
		"nothing was said":       {v1alpha1.ReleaseStatus{}, ""},
		"the operation names it": {v1alpha1.ReleaseStatus{LastOperation: &v1alpha1.Operation{Type: "Remove", Message: "Pod team/web is still there"}}, ", it says: Pod team/web is still there"},
		"only an exception does": {
			v1alpha1.ReleaseStatus{LastOperation: &v1alpha1.Operation{Type: "Remove"}, Exceptions: []v1alpha1.ObjectException{held}},
			", it says: ConfigMap team/held: held by finalizer example.com/x",
		},
		"an exception without a message": {
			v1alpha1.ReleaseStatus{LastOperation: &v1alpha1.Operation{Type: "Remove"}, Exceptions: []v1alpha1.ObjectException{{Kind: "Namespace", Name: "team", Reason: "PruneFailed"}}},
			", it says: Namespace team: PruneFailed",
		},
		"it was said of the order before": {
			v1alpha1.ReleaseStatus{LastOperation: &v1alpha1.Operation{Type: "Sync", Message: "after 5m still Deployment team/web"}, Exceptions: []v1alpha1.ObjectException{held}}, "",
		},
		"it is too long": {
			v1alpha1.ReleaseStatus{LastOperation: &v1alpha1.Operation{Type: "Remove", Message: strings.Repeat("x", maxObstacleBytes-1) + "\u00e9 and more"}},
			", it says: " + strings.Repeat("x", maxObstacleBytes-1) + "...",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := obstacle(&c.status); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
