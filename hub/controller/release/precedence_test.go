// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func inWave(wave int32) func(*corev1alpha1.Release) {
	return func(r *corev1alpha1.Release) { r.Spec.ClusterWave = wave }
}

func after(names ...string) func(*corev1alpha1.Release) {
	return func(r *corev1alpha1.Release) {
		for _, name := range names {
			r.Spec.DependsOn = append(r.Spec.DependsOn, corev1alpha1.ReleaseReference{Name: name})
		}
	}
}

// said is the message of a condition.
func said(r *corev1alpha1.Release, kind string) string {
	if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// untilSays waits until a Release waits, with a text in its message.
func (s *stage) untilSays(name, want, text string) *corev1alpha1.Release {
	s.t.Helper()
	return s.until(name, want+" with "+text, func(r *corev1alpha1.Release) bool {
		return condition(r, "Applied") == want && strings.Contains(said(r, "Applied"), text)
	})
}

// ordered is the order of a Release; none is no order.
func (s *stage) ordered(name string) (tunnel.Order, bool) {
	s.t.Helper()
	r, ok := s.cache.Release(key(name))
	if !ok {
		s.t.Fatalf("there is no %s", name)
	}
	return s.orders.Ordered(r.UID)
}

// untilOrdered waits for an order as it is wanted.
func (s *stage) untilOrdered(name, what string, wanted func(tunnel.Order) bool) tunnel.Order {
	s.t.Helper()
	var order tunnel.Order
	s.eventually("an order of "+name+" "+what, func() bool {
		var ok bool
		order, ok = s.ordered(name)
		return ok && wanted(order)
	})
	return order
}

func TestAReleaseWaitsForThoseOfLowerWaves(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.create("base", inWave(-1))
	s.untilCondition("base", "Applied", "False Progressing")
	s.create("app", inWave(3))
	s.untilSays("app", "False WaitingForWave", `Release "base" of clusterWave -1: Applied is False: Progressing`)
	s.untilCondition("app", "Rendered", "True Rendered")
	if _, ok := s.ordered("app"); ok {
		t.Fatal("it was ordered")
	}
	s.applied("base")
	s.untilCondition("app", "Applied", "False Progressing")
	s.untilOrdered("app", "with its wave", func(o tunnel.Order) bool { return o.Wave == 3 })
	s.applied("app")
	s.untilCondition("app", "Ready", "True Ready")

	t.Run("and a lower one that turns up later is waited for with the next render only", func(t *testing.T) {
		s.git.push("2", map[string]string{"app": "one", "other": "one"})
		s.create("late", inWave(-2), func(r *corev1alpha1.Release) { r.Spec.Content.Path = "other" })
		s.untilCondition("late", "Applied", "False Progressing")
		s.releases.Add(key("app"))
		s.untilCondition("app", "Applied", "True Applied")
		s.git.push("3", map[string]string{"app": "two", "other": "one"})
		s.releases.Add(key("app"))
		s.untilSays("app", "False WaitingForWave", `Release "late"`)
		s.remove("late") // nothing waits for what is being deleted
		s.untilSays("app", "False WaitingForWave", `Release "base"`)
	})
}

func TestAReleaseWaitsForItsDependencies(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.create("app", after("db"))
	s.untilSays("app", "False DependencyNotReady", `waits for Release "db": there is none`)
	s.create("db", after("base"))
	s.untilSays("app", "False DependencyNotReady", `waits for Release "db": Applied is False: DependencyNotReady`)
	s.create("base")
	s.untilCondition("base", "Applied", "False Progressing")
	s.applied("base")
	s.untilCondition("db", "Applied", "False Progressing")
	if _, ok := s.ordered("app"); ok {
		t.Fatal("app was ordered before db is there")
	}
	s.applied("db")
	s.untilCondition("app", "Applied", "False Progressing")
	s.applied("app")
	s.untilCondition("app", "Ready", "True Ready")

	t.Run("on an upgrade too, whichever is looked at first", func(t *testing.T) {
		before, _ := s.ordered("app")
		s.git.push("2", map[string]string{"app": "two"})
		s.releases.Add(key("app"))
		s.untilCondition("app", "Applied", "False DependencyNotReady")
		s.untilOrdered("base", "at the new revision", func(o tunnel.Order) bool { return o.Revision == "main@sha1:2" })
		s.untilSays("db", "False DependencyNotReady", `waits for Release "base"`)
		s.applied("base")
		s.untilOrdered("db", "at the new revision", func(o tunnel.Order) bool { return o.Revision == "main@sha1:2" })
		if now, _ := s.ordered("app"); now.Sequence != before.Sequence {
			t.Fatal("app was upgraded before db")
		}
		s.applied("db")
		s.untilOrdered("app", "at the new revision", func(o tunnel.Order) bool { return o.Revision == "main@sha1:2" })
	})
	t.Run("and for a change of its dependency's spec", func(t *testing.T) {
		s.applied("app")
		s.edit("db", func(r *corev1alpha1.Release) { r.Spec.TargetNamespace = "elsewhere" })
		s.untilOrdered("db", "for another namespace", func(o tunnel.Order) bool { return o.Policy.Namespace == "elsewhere" })
		s.edit("app", func(r *corev1alpha1.Release) { r.Spec.TargetNamespace = "elsewhere" })
		s.untilCondition("app", "Applied", "False DependencyNotReady")
		s.applied("db")
		s.untilOrdered("app", "for another namespace", func(o tunnel.Order) bool { return o.Policy.Namespace == "elsewhere" })
	})
}

func TestACircleThatCameToBeIsNamed(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.create("first", inWave(-1), after("second"))
	s.create("second") // of a higher wave than the one that depends on it
	s.untilSays("first", "False DependencyNotReady", "none of these will ever be ready, each waits for the next: first dependsOn second, second waits for the clusterWave of first")
	s.untilSays("second", "False WaitingForWave", `Release "first"`)
	s.edit("first", func(r *corev1alpha1.Release) { r.Spec.ClusterWave = 0 })
	s.untilCondition("second", "Applied", "False Progressing")
	s.applied("second")
	s.untilCondition("first", "Applied", "False Progressing")
}
