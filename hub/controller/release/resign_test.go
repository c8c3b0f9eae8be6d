// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestTheOrderOfAReleaseThatCannotBeRenderedIsSignedAnewAsItIs(t *testing.T) {
	for name, breaks := range map[string]func(*stage){
		"its source is broken": func(s *stage) {
			s.git.push("2", map[string]string{"app": "bad"})
		},
		"its source is away": func(s *stage) {
			s.git.fail(reasoned{corev1alpha1.ReasonFetchFailed, errors.New("no route to git.example")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.reachable(true)
			before := s.ready("web")
			public, private, err := ed25519.GenerateKey(nil)
			if err != nil {
				t.Fatal(err)
			}
			s.stop()
			breaks(s)
			s.signWith, s.accept, s.resync = private, []ed25519.PublicKey{s.server.Keyring.OrderKey.Public}, 50*time.Millisecond
			s.start()
			s.connects(nil)
			s.edit("web", func(r *corev1alpha1.Release) {
				r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: time.Now().Format(time.RFC3339Nano)}
			})
			after := s.until("web", "an order of the new key", func(r *corev1alpha1.Release) bool { return r.Status.Order.KeyID == tunnel.KeyID(public) })
			order, ok := s.orders.Ordered(after.UID)
			if !ok || order.Objects == nil || order.Objects.Digest != before.Status.RenderRef || after.Status.Sequence <= before.Status.Sequence {
				t.Errorf("ordered %+v, sequence %d, want the render of before in a newer order", order.Objects, after.Status.Sequence)
			}
		})
	}
}
