// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// byPhase judges a queue by its phase.
const byPhase = `    - group: mq.example.com
      kind: Queue
      healthy: has(object.status) && object.status.phase == 'Up'
      degraded: has(object.status) && object.status.phase == 'Failed'
      message: "'the queue in ' + cluster.name + ' is ' + (has(object.status) ? object.status.phase : 'new')"
`

func TestARuleSetSaysHowACustomKindIs(t *testing.T) {
	for _, at := range shared.places {
		t.Run("in Cluster "+at.name, func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t)
			name := "judged-" + at.name
			release := deployed(ctx, t, at, name, name)
			// Nobody has written the set that it names.
			shows(ctx, t, release, "Applied", "True", "", "")
			shows(ctx, t, release, "Ready", "Unknown", corev1alpha1.ReasonRulesMissing, name)

			phase(ctx, t, at, release, "Up")
			before := current(ctx, t, release)
			writes := watched(ctx, t, release)
			kubectl(ctx, t, set("HealthRuleSet", name, byPhase))
			after := shows(ctx, t, release, "Ready", "True", "", "")
			if after.Status.Sequence == before.Status.Sequence || after.Status.RenderRef != before.Status.RenderRef {
				t.Errorf("order %d of %s became %d of %s: want a new order of the same render",
					before.Status.Sequence, before.Status.RenderRef, after.Status.Sequence, after.Status.RenderRef)
			}
			// One for the order and one for what it found; on a machine that is slow a third
			// tells that it is under way.
			if n := writes(); n > 3 {
				t.Errorf("%d writes of the status for other rules", n)
			}
			untouched(t, at, release)

			phase(ctx, t, at, release, "Failed")
			failed := shows(ctx, t, release, "Healthy", "False", corev1alpha1.ReasonDegraded, "the queue in "+at.name+" is Failed")
			if len(failed.Status.Exceptions) != 1 || failed.Status.Exceptions[0].Name != "orders" {
				t.Errorf("exceptions: %+v", failed.Status.Exceptions)
			}

			// A change of the rules judges anew.
			kubectl(ctx, t, set("HealthRuleSet", name, strings.NewReplacer("'Up'", "'Failed'", "'Failed'", "'Up'").Replace(byPhase)))
			shows(ctx, t, release, "Ready", "True", "", "")
			untouched(t, at, release)

			// A set that is named and goes leaves the rules in use, and doubt.
			if _, err := shared.hub.Plane.Kubectl(ctx, "-n", team, "delete", "healthruleset", name); err != nil {
				t.Fatal(err)
			}
			kept := shows(ctx, t, release, "Healthy", "Unknown", corev1alpha1.ReasonRulesMissing, name)
			if kept.Status.Order == nil || !strings.Contains(kept.Status.Order.Payload, `"rules":{"digest"`) {
				t.Errorf("the order names no rules: %+v", kept.Status.Order)
			}
			kubectl(ctx, t, set("HealthRuleSet", name, strings.NewReplacer("'Up'", "'Failed'", "'Failed'", "'Up'").Replace(byPhase)))
			again := shows(ctx, t, release, "Ready", "True", "", "")
			if again.Status.Sequence != kept.Status.Sequence {
				t.Errorf("order %d became %d, for the same rules", kept.Status.Sequence, again.Status.Sequence)
			}
		})
	}
}

func TestABrokenRuleIsToldOnItsSetAndHarmsNothing(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	at := shared.places[0]
	release := deployed(ctx, t, at, "unharmed", "half-broken")
	kubectl(ctx, t, set("HealthRuleSet", "half-broken", byPhase+`    - group: mq.example.com
      kind: Topic
      healthy: object.status.phase ==
      degraded: size(cluster) > 0
`))
	u, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.HealthRuleSets, team, "half-broken", harness.HasCondition("Ready", "False", extensionsv1alpha1.ReasonRulesFailed))
	if err != nil {
		t.Fatal(err)
	}
	broken, err := harness.As[extensionsv1alpha1.HealthRuleSet](u)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, one := range broken.Status.Errors {
		fields = append(fields, one.Field)
	}
	if got := strings.Join(fields, " "); got != "rules[1].degraded rules[1].healthy" {
		t.Errorf("errors of %q: %+v", got, broken.Status.Errors)
	}
	phase(ctx, t, at, release, "Up")
	shows(ctx, t, release, "Ready", "True", "", "")
	phase(ctx, t, at, release, "Failed")
	shows(ctx, t, release, "Healthy", "False", corev1alpha1.ReasonDegraded, "is Failed")

	kubectl(ctx, t, set("HealthRuleSet", "half-broken", byPhase))
	if _, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.HealthRuleSets, team, "half-broken", harness.HasCondition("Ready", "True", extensionsv1alpha1.ReasonCompiled)); err != nil {
		t.Error(err)
	}
}

// Each Release is healthy by the set that should decide and degraded by the others.
func TestWhichSetDecides(t *testing.T) {
	const good = "    - {group: mq.example.com, kind: Queue, healthy: 'true'}\n"
	const bad = "    - {group: mq.example.com, kind: Queue, degraded: 'true'}\n"
	for name, c := range map[string]struct {
		sets  []string // manifests
		names []string
	}{
		"one-of-the-namespace-before-a-global-one-of-its-name": {
			sets:  []string{set("HealthRuleSet", "a-twice", good), set("GlobalHealthRuleSet", "a-twice", bad)},
			names: []string{"a-twice"},
		},
		"a-global-one-that-is-named-first": {
			sets:  []string{set("HealthRuleSet", "b-second", bad), set("GlobalHealthRuleSet", "b-first", good)},
			names: []string{"b-first", "b-second"},
		},
		"one-that-judges-no-queue-leaves-it-to-the-next": {
			sets:  []string{set("HealthRuleSet", "c-none", strings.Replace(bad, "Queue", "Topic", 1)), set("GlobalHealthRuleSet", "c-next", good)},
			names: []string{"c-none", "c-next"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t)
			for _, manifest := range c.sets {
				kubectl(ctx, t, manifest)
			}
			shows(ctx, t, deployed(ctx, t, shared.places[0], name, c.names...), "Ready", "True", "", "")
		})
	}
}

func current(ctx context.Context, t *testing.T, release string) *corev1alpha1.Release {
	t.Helper()
	u, err := shared.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).Get(ctx, release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := harness.As[corev1alpha1.Release](u)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// watched counts the writes of a Release from now on.
func watched(ctx context.Context, t *testing.T, release string) (count func() int) {
	t.Helper()
	from := current(ctx, t, release).ResourceVersion
	return func() int {
		t.Helper()
		until := current(ctx, t, release).ResourceVersion
		w, err := shared.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).Watch(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + release, ResourceVersion: from,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		n := 0
		for event := range w.ResultChan() {
			if event.Type != watch.Modified {
				continue
			}
			n++
			if u, ok := event.Object.(*unstructured.Unstructured); ok && u.GetResourceVersion() == until {
				return n
			}
		}
		t.Fatal("the watch ended early")
		return n
	}
}

// untouched reads in the audit log that the queue was written once, when it was made.
func untouched(t *testing.T, at place, release string) {
	t.Helper()
	events, err := harness.AuditAll(at.plane.AuditLog(), harness.AboutResource(queues.Group, queues.Resource), harness.WithVerb("patch"), harness.NotHarness(), harness.Finished())
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	for _, event := range events {
		if event.Object.Namespace == release && event.Object.Subresource == "" && !strings.Contains(event.URI, "dryRun=All") {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("the queue of %s was applied %d times, want once: rules judge and apply nothing", release, writes)
	}
}
