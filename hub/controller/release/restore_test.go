// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// backInTime takes a Release, and the hub with it, back to what it was before its
// spec led to another folder, and returns the order that its agent holds since.
func (s *stage) backInTime(name string) tunnel.Signed {
	s.t.Helper()
	s.git.push("1", map[string]string{"app": "one", "app2": "two", "app3": "three"})
	before := s.ready(name)
	s.edit(name, func(r *corev1alpha1.Release) { r.Spec.Content.Path = "app2" })
	after := s.until(name, "the second order", func(r *corev1alpha1.Release) bool { return r.Status.Sequence > before.Status.Sequence })
	signature, err := base64.StdEncoding.DecodeString(after.Status.Order.Signature)
	if err != nil {
		s.t.Fatal(err)
	}
	s.stop()
	s.edit(name, func(r *corev1alpha1.Release) { r.Spec = before.Spec })
	_, err = s.server.Storage().Releases.UpdateStatus(s.t.Context(), key(name), "", func(r *corev1alpha1.Release) error {
		r.Status = *before.Status.DeepCopy()
		r.Status.ObservedGeneration = r.Generation
		for i := range r.Status.Conditions {
			r.Status.Conditions[i].ObservedGeneration = r.Generation
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.resync = 50 * time.Millisecond
	s.start()
	s.eventually("the past", func() bool {
		ordered, ok := s.orders.Ordered(before.UID)
		return ok && ordered.Sequence == before.Status.Sequence
	})
	return tunnel.Signed{Type: tunnel.TypeOrder, KeyID: after.Status.Order.KeyID, Payload: []byte(after.Status.Order.Payload), Signature: signature}
}

// givesBack lets the agent connect and give its order back.
func (s *stage) givesBack(held tunnel.Signed) tunnel.Order {
	s.t.Helper()
	order, err := tunnel.ParseOrder(held.Payload)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff([]string{order.Release.UID}, s.connects(map[string]int64{order.Release.UID: order.Sequence})); diff != "" {
		s.t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if err := s.reporter.Take(s.t.Context(), s.cluster, []tunnel.Signed{held}); err != nil {
		s.t.Fatal(err)
	}
	return order
}

func (s *stage) untilBehind(want bool) {
	s.t.Helper()
	s.eventually("HubBehind of the Cluster", func() bool {
		cluster, ok := s.cache.Cluster(key("edge"))
		return ok && meta.IsStatusConditionTrue(cluster.Status.Conditions, corev1alpha1.ConditionHubBehind) == want
	})
}

func TestHA03ARestoredHubTakesBackWhatItsAgentHoldsAndOrdersNothing(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	held := s.backInTime("web")
	order := s.givesBack(held)
	adopted := s.until("web", "the adopted order", func(r *corev1alpha1.Release) bool { return r.Status.Adopted != nil })
	s.untilBehind(true)
	s.applied("web")
	s.untilCondition("web", "Applied", "True HubBehind")
	s.untilCondition("web", "Ready", "True Ready")
	<-time.NewTimer(300 * time.Millisecond).C // several resyncs
	after, _ := s.cache.Release(key("web"))
	if after.Status.Sequence != order.Sequence || after.Status.RenderRef != order.Objects.Digest || after.Status.Order.Payload != string(held.Payload) {
		t.Errorf("sequence %d, render %s; want those that the agent gave back: %d, %s", after.Status.Sequence, after.Status.RenderRef, order.Sequence, order.Objects.Digest)
	}
	if after.Status.Adopted.InputsHash != adopted.Status.InputsHash || s.renderer.made() != 0 {
		t.Errorf("inputs %s, %d renders", after.Status.Adopted.InputsHash, s.renderer.made())
	}
}

func TestHA03ARestoredHubOrdersNothingBeforeItsAgentHasSaidWhatItHolds(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	held := s.backInTime("web")
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Prune.Orphaned = ptr.To(false) })
	<-time.NewTimer(700 * time.Millisecond).C
	past, _ := s.cache.Release(key("web"))
	if past.Status.ObservedGeneration == past.Generation && meta.IsStatusConditionTrue(past.Status.Conditions, corev1alpha1.ConditionReady) {
		t.Error("the Release says that it is Ready with a spec of which nothing was ordered yet")
	}
	order := s.givesBack(held)
	<-time.NewTimer(700 * time.Millisecond).C
	now, _ := s.cache.Release(key("web"))
	if past.Status.Sequence >= order.Sequence {
		t.Errorf("order %d was made before the agent had a session, which holds order %d", past.Status.Sequence, order.Sequence)
	}
	if now.Status.Sequence != order.Sequence {
		t.Errorf("sequence %d, want %d: the spec was changed before the order was adopted", now.Status.Sequence, order.Sequence)
	}
}

func TestHA03AfterARestoreWorkGoesOnFromAnAdoptedOrder(t *testing.T) {
	tests := map[string]func(s *stage){
		"when the source moves on": func(s *stage) { s.git.push("2", map[string]string{"app": "one, changed", "app2": "two"}) },
		"when the spec is changed": func(s *stage) {
			s.edit("web", func(r *corev1alpha1.Release) { r.Spec.Content.Path = "app3" })
		},
		"when only the policy is changed": func(s *stage) {
			s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Prune.Orphaned = ptr.To(false) })
		},
		"when somebody asks for a sync": func(s *stage) {
			s.edit("web", func(r *corev1alpha1.Release) {
				r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: time.Now().Add(2 * time.Second).Format(time.RFC3339Nano)}
			})
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.reachable(true)
			order := s.givesBack(s.backInTime("web"))
			s.applied("web")
			s.untilBehind(true)
			change(s)
			after := s.until("web", "a new order", func(r *corev1alpha1.Release) bool { return r.Status.Sequence > order.Sequence })
			if after.Status.Adopted != nil || after.Status.RenderRef == order.Objects.Digest {
				t.Errorf("adopted %+v, render %s", after.Status.Adopted, after.Status.RenderRef)
			}
			s.untilBehind(false)
			s.applied("web")
			s.untilCondition("web", "Applied", "True Applied")
		})
	}
}

func TestHA03ASourceThatIsWhereTheAgentIsOrdersNothing(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.git.push("1", map[string]string{"app": "one", "app2": "two"})
	held := s.backInTime("web")
	s.git.push("2", map[string]string{"app": "two", "app2": "two"})
	order := s.givesBack(held)
	after := s.until("web", "an order that is held on to no longer", func(r *corev1alpha1.Release) bool {
		return r.Status.Sequence == order.Sequence && r.Status.Adopted == nil
	})
	if after.Status.RenderRef != order.Objects.Digest {
		t.Errorf("render %s, want %s", after.Status.RenderRef, order.Objects.Digest)
	}
}

func TestOrdersOfAnotherKeyAreSignedAnewAndStayGoodMeanwhileIfItIsAccepted(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	by := s.ready("by-hand", func(r *corev1alpha1.Release) {
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: "now"}
	})
	s.edit("by-hand", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Automatic = ptr.To(false) })
	by = s.until("by-hand", "the manual order", func(r *corev1alpha1.Release) bool { return r.Status.Sequence > by.Status.Sequence })
	for _, accepted := range []bool{true, false} {
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		old := s.server.Keyring.OrderKey.Public
		s.stop()
		if s.signWith, s.accept, s.resync = private, nil, 50*time.Millisecond; accepted {
			s.accept = []ed25519.PublicKey{old}
		}
		s.start()
		if _, ok := s.orders.Ordered(before.UID); ok != accepted {
			t.Errorf("the order of a key that is accepted (%v) counts: %v", accepted, ok)
		}
		s.connects(nil)
		after := s.until("web", "an order of the new key", func(r *corev1alpha1.Release) bool { return r.Status.Order.KeyID == tunnel.KeyID(public) })
		if after.Status.Sequence <= before.Status.Sequence || after.Status.RenderRef != before.Status.RenderRef {
			t.Errorf("sequence %d, render %s", after.Status.Sequence, after.Status.RenderRef)
		}
		// An order applies: in manual mode there is none that nobody asked for.
		if now, _ := s.cache.Release(key("by-hand")); now.Status.Sequence != by.Status.Sequence {
			t.Error("an order was made in manual mode")
		}
		before = after
	}
	s.untilCondition("by-hand", "Applied", "False ManualSync")
}
