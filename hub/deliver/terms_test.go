// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// golden is an order as it was before orders carried more than a render and its
// policy: a hub that is upgraded orders nothing anew.
const golden = `{"verb":"apply","hub":"hub","clusterUID":"c1","release":{"uid":"r1","namespace":"team","name":"shop"},` +
	`"sequence":946684800000,"issuedAt":"2000-01-01T00:00:00Z","revision":"main@sha1:1",` +
	`"objects":{"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001","size":10},` +
	`"sealed":{"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000002","size":20},` +
	`"policy":{"automatic":true,"timeoutSeconds":300,"forceConflicts":false,"replace":true,"pruneOrphaned":true,"namespace":"team"},` +
	`"requires":["apply.v1","sealed.v1","replace.v1"]}`

const (
	objectsDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	sealedDigest  = "sha256:0000000000000000000000000000000000000000000000000000000000000002"
)

func intent() Intent {
	return Intent{
		Release:    &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "r1"}},
		ClusterUID: "c1", Revision: "main@sha1:1",
		Objects: &tunnel.Layer{Digest: objectsDigest, Size: 10}, Sealed: &tunnel.Layer{Digest: sealedDigest, Size: 20},
		Terms: Terms{Policy: tunnel.Policy{Automatic: true, TimeoutSeconds: 300, Replace: true, PruneOrphaned: true, Namespace: "team"}},
	}
}

func TestAnOrderThatUsesNothingNewIsByteForByteWhatItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		order, err := f.Issue(intent())(0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(golden, order.Payload); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
	})
}

func TestAnOrderNamesTheFeaturesThatItNeeds(t *testing.T) {
	layer := &tunnel.Layer{Digest: objectsDigest, Size: 10}
	for name, c := range map[string]struct {
		change func(*Intent)
		want   string
	}{
		"hooks of the render":               {func(i *Intent) { i.Hooks = true }, tunnel.FeatureHooks},
		"an action on a hook":               {func(i *Intent) { i.Actions = []tunnel.HookAction{{Hook: "a", Run: "b", Action: "skip"}} }, tunnel.FeatureHooks},
		"an account":                        {func(i *Intent) { i.ServiceAccount = "team:deployer" }, tunnel.FeatureImpersonate},
		"fields that are ignored":           {func(i *Intent) { i.Ignore = []tunnel.Ignore{{Kind: "Deployment"}} }, tunnel.FeatureIgnore},
		"health rules":                      {func(i *Intent) { i.Rules = layer }, tunnel.FeatureRules},
		"a Cluster that permits some":       {func(i *Intent) { i.Permitted = &tunnel.Allowed{} }, tunnel.FeaturePermitted},
		"a budget":                          {func(i *Intent) { i.Policy.Budget = &tunnel.DeletionBudget{Count: 1} }, tunnel.FeatureBudget},
		"deletions that were confirmed":     {func(i *Intent) { i.Confirmed = objectsDigest }, tunnel.FeatureBudget},
		"kinds that may be pruned":          {func(i *Intent) { i.Policy.Allowed = []string{"Namespace"} }, tunnel.FeaturePrune},
		"a propagation":                     {func(i *Intent) { i.Policy.Propagation = "Orphan" }, tunnel.FeaturePrune},
		"a wave":                            {func(i *Intent) { i.Wave = -1 }, tunnel.FeatureWave},
		"a Release that is suspended":       {func(i *Intent) { i.Policy.Suspended = true }, tunnel.FeatureSuspend},
		"pauses and a limit of retries":     {func(i *Intent) { i.Policy.Retry = &tunnel.Retry{} }, tunnel.FeatureRetry},
		"a force alone needs nothing of it": {func(i *Intent) { i.Force = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			made := intent()
			made.Sealed, made.Policy.Replace = nil, false
			c.change(&made)
			var order tunnel.Order
			made.put(&order)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, order.Requires); diff != "" {
				t.Errorf("features (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTermsThatWereSignedAndReadAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		made := intent()
		made.Policy.Budget, made.Policy.Retry = &tunnel.DeletionBudget{Count: 3}, &tunnel.Retry{Limit: -1, MinSeconds: 2}
		made.Permitted = &tunnel.Allowed{Namespaces: []string{}, ClusterKinds: []string{"*"}}
		made.Ignore = []tunnel.Ignore{{Kind: "Deployment", Pointers: []string{}, Managers: []string{"hpa"}}}
		made.Facts = map[string]string{}
		made.Once = Once{Force: true, Confirmed: objectsDigest, ConfirmedUntil: time.Now()}
		order, err := f.Issue(made)(0)
		if err != nil {
			t.Fatal(err)
		}
		read, err := tunnel.ParseOrder([]byte(order.Payload))
		if err != nil {
			t.Fatal(err)
		}
		if got := TermsOf(read); !got.Equal(made.Terms) {
			t.Errorf("terms differ: %s", cmp.Diff(made.Terms, got))
		}
		if read.Permitted.Namespaces == nil {
			t.Error("an empty list of namespaces, which permits none, became none, which permits all")
		}
		read.Wave = 1
		if TermsOf(read).Equal(made.Terms) {
			t.Error("another wave is the same")
		}
	})
}
