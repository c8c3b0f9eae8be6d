// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

var errStore = errors.New("the API server is away")

func TestKeysThatTheHubNamesAreStoredBeforeAnyOrderIsTaken(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	first, second := h.orderKey, newKey(t)
	h.orderKey = second // announced under the first, which the agent knows
	h.answer = func(answer *tunnel.HelloAnswer) { answer.OrderKeys = public(first, second) }
	h.lines = []tunnel.OrderEvent{{Order: ptr(h.sign(t, "a", 1))}}
	a.store.fail = errStore
	a.run(t)
	h.wait(t, "three attempts", func() bool { return len(h.hellos) >= 3 })
	if a.engine.Have()["a"] != 0 || a.link.Connected() {
		t.Error("an order was taken under keys that are not stored")
	}
	a.store.mu.Lock()
	a.store.fail = nil
	a.store.mu.Unlock()
	a.engine.wait(t, "the order", func() bool { return a.engine.have["a"] == 1 })
	if got := a.store.get(); len(got.OrderKeys) != 2 {
		t.Errorf("%d keys stored, want old and new", len(got.OrderKeys))
	}
}

func TestAnOrderKeyThatWasRetiredSignsNothingAnyMoreAndIsRemembered(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	old := h.orderKey
	stale := h.sign(t, "stale", 1)
	h.orderKey = newKey(t)
	h.lines = []tunnel.OrderEvent{{Order: ptr(stale)}, {Order: ptr(h.sign(t, "fresh", 1))}}
	a.run(t)
	a.engine.wait(t, "the order by the new key", func() bool { return a.engine.have["fresh"] == 1 })
	if _, ok := a.engine.Have()["stale"]; ok {
		t.Error("an order by the retired key was accepted")
	}
	got := a.store.get()
	if len(got.FormerOrderKeys) != 1 || !bytes.Equal(got.FormerOrderKeys[0], old.Public().(ed25519.PublicKey)) {
		t.Errorf("former keys are %x", got.FormerOrderKeys)
	}
	// The key comes back with a hub that was restored: it is no former one any more.
	h.mu.Lock()
	h.orderKey = old
	h.lines = []tunnel.OrderEvent{{Order: ptr(h.sign(t, "restored", 1))}}
	h.mu.Unlock()
	h.cut()
	a.engine.wait(t, "the order by the old key", func() bool { return a.engine.have["restored"] == 1 })
	if got := a.store.get(); len(got.OrderKeys) != 1 || len(got.FormerOrderKeys) != 1 || bytes.Equal(got.FormerOrderKeys[0], got.OrderKeys[0]) {
		t.Errorf("keys %x, former %x", got.OrderKeys, got.FormerOrderKeys)
	}
}

func TestTheSetOfHubCAsIsExtendedAndReducedOverTheSession(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	before, after := h.issuer, newIssuer(t, h.id)
	connected := func(what string, n int) {
		t.Helper()
		h.wait(t, what, func() bool { return len(h.hellos) >= n && len(h.streams) == 1 })
	}
	step := func(f func()) {
		t.Helper()
		h.mu.Lock()
		f()
		h.mu.Unlock()
		h.cut()
		h.wait(t, "the end of the session", func() bool { return len(h.streams) == 0 })
	}
	h.accepted = append(h.accepted, after.CA)
	h.answer = func(answer *tunnel.HelloAnswer) { answer.HubCA = pemOf(before.CA, after.CA) }
	a.run(t)
	connected("a session under the old CA", 1)
	step(func() { h.issuer = after })
	connected("a session under the new CA", 2)
	step(func() { h.issuer = before }) // restored: it has only the old one
	connected("a session under the old CA again", 3)
	step(func() { h.issuer, h.answer = after, nil }) // retired: the new one alone
	connected("a session under the new CA again", 4)
	if got := a.store.get(); !bytes.Equal(got.HubCA, pemOf(after.CA)) {
		t.Error("the retired CA is still trusted")
	}
	h.mu.Lock()
	seen := len(h.hellos)
	h.mu.Unlock()
	step(func() { h.issuer = before })
	sees(t, &rig{link: a.link, store: &store{}}, 6)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hellos) != seen {
		t.Error("a hub with the retired CA was believed")
	}
}

func TestASetOfKeysThatWouldLockTheHubOutIsNotTaken(t *testing.T) {
	stranger := newIssuer(t, "0123456789abcdef").CA
	leaf := func(h *bareHub) *x509.Certificate {
		cert, err := h.issuer.Server([]string{"x"}, h.issuer.CA.NotBefore)
		if err != nil {
			t.Fatal(err)
		}
		return cert.Leaf
	}
	for name, change := range map[string]func(*bareHub, *tunnel.HelloAnswer){
		"CAs without the one in use":   func(_ *bareHub, a *tunnel.HelloAnswer) { a.HubCA = pemOf(stranger) },
		"a certificate that is no CA":  func(h *bareHub, a *tunnel.HelloAnswer) { a.HubCA = pemOf(h.issuer.CA, leaf(h)) },
		"CAs that are none":            func(_ *bareHub, a *tunnel.HelloAnswer) { a.HubCA = []byte("x") },
		"order keys that are none":     func(_ *bareHub, a *tunnel.HelloAnswer) { a.OrderKeys = [][]byte{[]byte("short")} },
		"more keys than anybody has":   func(_ *bareHub, a *tunnel.HelloAnswer) { a.OrderKeys = make([][]byte, 1000) },
		"the words of a different hub": func(_ *bareHub, a *tunnel.HelloAnswer) { a.Hub = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newBareHub(t)
			a := newAgent(t, h)
			h.answer = func(answer *tunnel.HelloAnswer) { change(h, answer) }
			a.run(t)
			h.wait(t, "two attempts", func() bool { return len(h.hellos) >= 2 })
			a.stop()
			if got := a.store.get(); a.store.saves != 0 {
				t.Errorf("stored %+v", got)
			}
		})
	}
}

func TestAnEmptySetOfKeysChangesNothing(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	h.answer = func(answer *tunnel.HelloAnswer) { answer.OrderKeys, answer.HubCA = nil, nil }
	h.lines = []tunnel.OrderEvent{{Order: ptr(h.sign(t, "a", 1))}}
	a.run(t)
	a.engine.wait(t, "an order", func() bool { return a.engine.have["a"] == 1 })
}
