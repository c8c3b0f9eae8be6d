// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
)

func TestRuleSetsOfANamespaceAndGlobalOnesAreHeldApart(t *testing.T) {
	own := extensionsv1alpha1.HealthRuleSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "queues", UID: "o", ResourceVersion: "5"}}
	global := extensionsv1alpha1.GlobalHealthRuleSet{ObjectMeta: metav1.ObjectMeta{Name: "queues", UID: "g", ResourceVersion: "5"}}
	ownEvents := watch.NewFake()
	at := metav1.ListMeta{ResourceVersion: "7"}
	c := New(Options{
		Releases:       registry(&corev1alpha1.ReleaseList{ListMeta: at}, watch.NewFake()),
		Clusters:       registry(&corev1alpha1.ClusterList{ListMeta: at}, watch.NewFake()),
		RuleSets:       registry(&extensionsv1alpha1.HealthRuleSetList{ListMeta: at, Items: []extensionsv1alpha1.HealthRuleSet{own}}, ownEvents),
		GlobalRuleSets: registry(&extensionsv1alpha1.GlobalHealthRuleSetList{ListMeta: at, Items: []extensionsv1alpha1.GlobalHealthRuleSet{global}}, watch.NewFake()),
	})
	told := make(chan string, 10)
	c.OnRuleSet(func(old, next extensionsv1alpha1.RuleSet) {
		if next == nil {
			told <- "no " + old.RuleSetKind() + " " + string(old.GetUID())
			return
		}
		told <- next.RuleSetKind() + " " + string(next.GetUID()) + "@" + next.GetResourceVersion()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-c.Ready():
	case <-ctx.Done():
		t.Fatal("the cache was never complete")
	}
	first := map[string]bool{<-told: true, <-told: true}
	if !first["HealthRuleSet o@5"] || !first["GlobalHealthRuleSet g@5"] {
		t.Errorf("told of %v", first)
	}
	for place, want := range map[string]types.UID{"team": "o", "": "g"} {
		set, ok := c.RuleSet(types.NamespacedName{Namespace: place, Name: "queues"})
		if !ok || set.GetUID() != want {
			t.Errorf("in %q: %v", place, set)
		}
		if list := c.RuleSets(place); len(list) != 1 || list[0].GetUID() != want {
			t.Errorf("in %q: %d sets", place, len(list))
		}
	}
	if all := c.AllRuleSets(); len(all) != 2 || len(c.RuleSets("other")) != 0 {
		t.Errorf("%d in all, %d in another namespace", len(all), len(c.RuleSets("other")))
	}
	written := own.DeepCopy()
	written.ResourceVersion = "8"
	c.PutRuleSet(written)
	if got := <-told; got != "HealthRuleSet o@8" {
		t.Errorf("told of %s", got)
	}
	gone := own.DeepCopy()
	gone.ResourceVersion = "9"
	ownEvents.Delete(gone)
	if got := <-told; got != "no HealthRuleSet o" {
		t.Errorf("told of %s", got)
	}
	if set, ok := c.RuleSet(types.NamespacedName{Namespace: "team", Name: "queues"}); ok || set != nil {
		t.Error("a set that is gone was found")
	}
	cancel()
	must(t, <-ended)
}

func TestACacheWithoutRuleSetsHasNone(t *testing.T) {
	c := New(Options{})
	c.OnRuleSet(func(_, _ extensionsv1alpha1.RuleSet) {})
	c.PutRuleSet(&extensionsv1alpha1.HealthRuleSet{})
	if _, ok := c.RuleSet(types.NamespacedName{Name: "x"}); ok || c.RuleSets("") != nil || c.AllRuleSets() != nil {
		t.Error("there are some")
	}
}

func TestAReleaseRefersToTheRulesThatItsOrderNames(t *testing.T) {
	c := New(Options{})
	named := release("a", "1", 5)
	named.Status.Order = &corev1alpha1.OrderStatus{Payload: `{"rules":{"digest":"sha256:aa","size":1}}`}
	must(t, c.releases.Replace([]any{named, release("b", "2", 5)}, "6"))
	if got := c.ReleasesReferringTo("sha256:aa"); len(got) != 1 || got[0].UID != "1" {
		t.Errorf("%d Releases", len(got))
	}
}
