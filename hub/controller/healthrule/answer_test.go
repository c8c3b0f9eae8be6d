// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestFactsAreWhatTheRulesReadAndNothingElse(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, own("team", "a", rule("Queue",
		`cluster.name == 'x' && cluster.region == 'x' && cluster.zone == 'x' && self.name == 'x' && self.targetNamespace == 'x' && self.labels.tier == 'x' `+
			`&& self.annotations['note.example/a.b'] == 'x' && self.annotations.long == 'x' && self.labels['convoy.kumodo.io/shard'] == 'x'`)))
	one := release("web")
	one.Labels = map[string]string{"tier": "front", "more": "x", corev1alpha1.LabelShard: "3"}
	one.Annotations = map[string]string{"note.example/a.b": "yes", "long": strings.Repeat("x", maxFactBytes+1)}
	want := map[string]string{
		"cluster.name": "edge", "cluster.region": "eu", "self.name": "web", "self.targetNamespace": "team",
		"self.labels.tier": "front", "self.annotations.note.example/a.b": "yes",
	}
	if diff := cmp.Diff(want, w.order(t, r, one).Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestWhatWasOrderedStaysUntilAllSetsThatAreNamedAreThere(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, own("team", "a", rule("Queue", "true")))
	one := release("web", "a", "b")
	first := w.order(t, r, one)
	if first.Rules == nil {
		t.Fatal("a Release that nothing was ordered for yet is not judged by the set that is there")
	}
	if diff := cmp.Diff([]string{"b"}, r.Missing(one)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	changed := own("team", "a", rule("Queue", "false"))
	changed.Generation = 2
	w.sets[keyOf(changed)] = changed
	if diff := cmp.Diff(first, w.order(t, r, one)); diff != "" {
		t.Errorf("with one missing (-before +after):\n%s", diff)
	}
	w.sets[types.NamespacedName{Name: "b"}] = global("b", rule("Topic", "true"))
	if after := w.order(t, r, one); *after.Rules == *first.Rules || len(r.Missing(one)) > 0 {
		t.Errorf("with all there: %v, missing %v", after.Rules, r.Missing(one))
	}
	delete(w.sets, keyOf(changed))
	before := w.orders[one.UID]
	if diff := cmp.Diff(before, w.order(t, r, one)); diff != "" {
		t.Errorf("after one was deleted (-before +after):\n%s", diff)
	}
}

func TestAChangeOfARuleReachesAllReleasesAtABoundedPace(t *testing.T) {
	t.Parallel()
	const releases = 5 * turnsPerSecond
	w, r := newWorld(t, global("a", rule("Queue", "true")))
	for i := range releases {
		w.releases = append(w.releases, release(fmt.Sprintf("r-%d", i)))
	}
	var before tunnel.Order
	for _, one := range w.releases {
		before = w.order(t, r, one)
	}
	next := global("a", rule("Queue", "false"))
	next.Generation = 2
	w.sets[keyOf(next)] = next
	r.Changed(global("a"), next)
	if len(w.enqueued) != releases {
		t.Fatalf("%d Releases are looked at, want %d", len(w.enqueued), releases)
	}
	clear(w.enqueued)
	changed := func() (n int) {
		for _, one := range w.releases {
			if *w.order(t, r, one).Rules != *before.Rules {
				n++
			}
		}
		return n
	}
	if got := changed(); got != turnsPerSecond {
		t.Errorf("%d Releases got the rules at once, want %d", got, turnsPerSecond)
	}
	if got := changed(); got != turnsPerSecond {
		t.Errorf("%d Releases have them when all are looked at again, want %d", got, turnsPerSecond)
	}
	if len(w.enqueued) != releases-turnsPerSecond {
		t.Errorf("%d Releases wait for their turn, want %d", len(w.enqueued), releases-turnsPerSecond)
	}
	var last time.Duration
	for _, after := range w.enqueued {
		last = max(last, after)
	}
	if want := (releases - turnsPerSecond) * time.Second / turnsPerSecond; last < want-time.Second || last > want+time.Second {
		t.Errorf("the last comes after %s, want about %s", last, want)
	}
	w.clock.Step(last + time.Second)
	if got := changed(); got != releases {
		t.Errorf("%d Releases have the rules in the end, want %d", got, releases)
	}
	if len(r.turns) != 0 {
		changed()
	}
	if len(r.turns) != 0 {
		t.Errorf("%d turns are remembered of Releases that have had theirs", len(r.turns))
	}
}

func TestAReleaseWhoseSpecHasChangedDoesNotWaitForItsTurn(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, own("team", "a", rule("Queue", "true")), own("team", "b", rule("Queue", "false")))
	r.pace.SetBurst(0)
	r.pace.SetLimit(0.001)
	one := release("web", "a")
	before := w.order(t, r, one)
	one.Spec.Health.RuleSets, one.Generation = []string{"b"}, 2
	if after := w.order(t, r, one); *after.Rules == *before.Rules {
		t.Error("it is judged by the set that it no longer names")
	}
}

func TestWhenTheStoreFailsThatIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, own("team", "a", rule("Queue", "true")))
	w.broken = errTest
	if _, _, err := r.Rules(t.Context(), release("web"), cluster()); !errors.Is(err, ErrStore) || !errors.Is(err, errTest) {
		t.Errorf("got %v, want %v", err, ErrStore)
	}
	w.broken = nil
	order := w.order(t, r, release("web"))
	if made, ok := r.Made(order.Rules.Digest); !ok || string(made) != w.stored(t, order.Rules) {
		t.Error("what is lost cannot be made again")
	}
	if _, ok := r.Made("sha256:" + strings.Repeat("0", 64)); ok {
		t.Error("a document that nobody made was found")
	}
}

func TestADocumentIsStoredAgainWhenTheStoreMayHaveCollectedIt(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, own("team", "a", rule("Queue", "true")))
	w.order(t, r, release("web"))
	w.order(t, r, release("api"))
	if w.puts != 1 {
		t.Errorf("stored %d times", w.puts)
	}
	w.clock.Step(2 * storeAgain)
	w.order(t, r, release("web"))
	if w.puts != 1 {
		t.Error("what an order names is stored again")
	}
	w.order(t, r, release("new"))
	if w.puts != 2 {
		t.Errorf("stored %d times, want again for an order that nothing named it before", w.puts)
	}
}

func TestWhileTheClusterIsAwayWhatIsOrderedStays(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, own("team", "a", rule("Queue", "cluster.region == 'eu'")))
	one := release("web")
	want := w.order(t, r, one)
	changed := own("team", "a", rule("Queue", "false"))
	changed.Generation = 2
	w.sets[keyOf(changed)] = changed
	away := cluster()
	away.Status.Reachable = false
	for name, at := range map[string]*corev1alpha1.Cluster{"it is gone": nil, "it is not reachable": away} {
		layer, facts, err := r.Rules(t.Context(), one, at)
		if err != nil || layer != want.Rules || !cmp.Equal(facts, want.Facts) {
			t.Errorf("%s: got %v, %v, %v", name, layer, facts, err)
		}
	}
	if len(r.turns) != 0 {
		t.Error("it takes the turn of another")
	}
	if after := w.order(t, r, one); *after.Rules == *want.Rules {
		t.Error("when it is back, other rules are not ordered")
	}
}
