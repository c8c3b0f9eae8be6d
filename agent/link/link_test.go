// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestOrdersThatTheHubDidNotSignAreRefusedAndNamed(t *testing.T) {
	r := setUp(t)
	r.order(t, "good", 5)
	r.run(t)
	r.engine.wait(t, "a good order", func() bool { return r.engine.have["good"] == 5 })
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	layer := r.AddBlob([]byte("x"))
	payload := func(uid string, sequence int64) []byte {
		raw, err := json.Marshal(tunnel.Order{
			Verb: tunnel.VerbApply, Hub: r.ID, ClusterUID: r.id.UID, Sequence: sequence, Release: tunnel.ReleaseRef{UID: uid}, Objects: &layer,
		})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	put := func(uid string, sequence int64, signed tunnel.Signed) {
		r.Put(r.id.UID, tunnel.SignedOrder{UID: uid, Sequence: sequence, Signed: signed}, &layer, nil)
	}
	put("stranger", 6, tunnel.Sign(tunnel.TypeOrder, payload("stranger", 6), stranger))
	swapped := tunnel.Sign(tunnel.TypeOrder, payload("swapped", 7), r.OrderKey)
	swapped.Payload = payload("swapped", 8)
	put("swapped", 8, swapped)
	put("mistyped", 9, tunnel.Sign(tunnel.TypeHead, payload("mistyped", 9), r.OrderKey))
	put("good", 4, tunnel.Sign(tunnel.TypeOrder, payload("good", 4), r.OrderKey)) // older: for the engine to refuse
	put("later", 10, tunnel.Sign(tunnel.TypeOrder, payload("later", 10), r.OrderKey))
	r.engine.wait(t, "the order after them", func() bool { return r.engine.have["later"] == 10 && len(r.engine.refused) == 3 })
	for _, uid := range []string{"stranger", "swapped", "mistyped"} {
		if f := r.engine.refused[uid]; f.Status != tunnel.False || f.Reason != v1alpha1.ReasonOrderRefused || f.Message == "" {
			t.Errorf("%s: reported as %+v", uid, f)
		}
		if _, ok := r.engine.Have()[uid]; ok {
			t.Errorf("%s was accepted", uid)
		}
	}
	if r.engine.Have()["good"] != 5 {
		t.Error("an older order replaced a newer one")
	}
}

func TestTheHeadTellsWhatTheHubDoesNotKnow(t *testing.T) {
	r := setUp(t)
	r.engine.have["beyond"] = 3
	r.order(t, "a", 1)
	r.run(t)
	want := map[string]int64{"a": 1}
	r.engine.wait(t, "a head that proves one order", func() bool { return len(r.engine.heads) > 0 })
	if diff := cmp.Diff(want, r.engine.heads[0]); diff != "" {
		t.Errorf("the hub has (-want +got):\n%s", diff)
	}
	if r.engine.Have()["beyond"] != 3 {
		t.Error("what the hub does not know was dropped")
	}
	r.Drop(r.id.UID, "a")
	r.engine.wait(t, "a head without orders", func() bool { return len(r.engine.heads[len(r.engine.heads)-1]) == 0 })
	if r.engine.Have()["a"] != 1 {
		t.Error("an absence was taken for an order")
	}
}

// lying serves orders as a broken or hostile hub would.
type lying struct {
	gateway.Orders
	mu   sync.Mutex
	hide string
	head func(tunnel.Signed) tunnel.Signed
}

func (l *lying) Current(uid string) ([]tunnel.SignedOrder, tunnel.Signed, <-chan struct{}) {
	orders, head, changed := l.Orders.Current(uid)
	l.mu.Lock()
	defer l.mu.Unlock()
	orders = slices.DeleteFunc(orders, func(o tunnel.SignedOrder) bool { return o.UID == l.hide })
	if l.head != nil {
		head = l.head(head)
	}
	return orders, head, changed
}

func TestAHeadThatDoesNotFitIsNotBelieved(t *testing.T) {
	for name, change := range map[string]func(*gatewaytest.Hub, *lying){
		"an order was held back": func(_ *gatewaytest.Hub, l *lying) { l.hide = "a" },
		"signed by another key": func(_ *gatewaytest.Hub, l *lying) {
			_, stranger, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			l.head = func(s tunnel.Signed) tunnel.Signed { return tunnel.Sign(s.Type, s.Payload, stranger) }
		},
		"of another cluster": func(h *gatewaytest.Hub, l *lying) {
			l.head = func(s tunnel.Signed) tunnel.Signed {
				head, err := tunnel.ParseHead(s.Payload)
				if err != nil {
					t.Error(err)
				}
				head.ClusterUID = "another"
				signed, err := tunnel.SignJSON(s.Type, head, h.OrderKey)
				if err != nil {
					t.Error(err)
				}
				return signed
			}
		},
		"long expired": func(h *gatewaytest.Hub, l *lying) {
			l.head = func(s tunnel.Signed) tunnel.Signed {
				head, err := tunnel.ParseHead(s.Payload)
				if err != nil {
					t.Error(err)
				}
				head.ExpiresAt = time.Now().Add(-time.Minute)
				signed, err := tunnel.SignJSON(s.Type, head, h.OrderKey)
				if err != nil {
					t.Error(err)
				}
				return signed
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t, func(h *gatewaytest.Hub, o *gateway.Options) {
				l := &lying{Orders: h}
				change(h, l)
				o.Orders = l
			})
			r.order(t, "a", 1)
			r.order(t, "b", 1)
			r.run(t)
			r.engine.wait(t, "the order that was sent", func() bool { return r.engine.have["b"] == 1 })
			// Asking the agent is a round trip behind the head.
			r.engine.change(func() { r.engine.newest["b"] = tunnel.Report{Counter: 1} })
			for !r.gateway.Sessions().Connected(r.id.UID) {
				t.Fatal("no session")
			}
			ask(t, r, "/v1/releases/b")
			if n := r.engine.headCount(); n != 0 {
				t.Errorf("%d heads were handed on", n)
			}
		})
	}
}

func ask(t *testing.T, r *rig, path string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, "http://x"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.gateway.Sessions().Call(r.id.UID, req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestTheHubAsksTheAgentLive(t *testing.T) {
	r := setUp(t)
	r.run(t)
	r.engine.wait(t, "a head", func() bool { return len(r.engine.heads) > 0 })
	r.engine.change(func() { r.engine.newest["a"] = tunnel.Report{Counter: 7} })
	for path, want := range map[string]int{"/v1/ping": 200, "/v1/releases/a": 200, "/v1/releases/b": 404, "/": 404, "/v1/sync/a": 404} {
		if got, body := ask(t, r, path); got != want {
			t.Errorf("%s: got %d %s, want %d", path, got, body, want)
		}
	}
}

func TestRendersAreFetchedWithinTheirSize(t *testing.T) {
	r := setUp(t)
	layer := r.order(t, "a", 1)
	r.run(t)
	read := func(l tunnel.Layer) ([]byte, error) {
		body, err := r.link.Open(r.ctx, l, false, "a")
		if err != nil {
			return nil, err
		}
		got, err := io.ReadAll(body)
		return got, errors.Join(err, body.Close())
	}
	if got, err := read(layer); err != nil || string(got) != "render of a" {
		t.Errorf("got %q, %v", got, err)
	}
	t.Run("longer than ordered", func(t *testing.T) {
		r.Corrupt(func(_ string, b []byte) []byte { return append(b, make([]byte, 10<<20)...) })
		if got, err := read(layer); !errors.Is(err, tunnel.ErrTooLong) || int64(len(got)) > layer.Size {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
	t.Run("shorter than ordered", func(t *testing.T) {
		r.Corrupt(func(_ string, b []byte) []byte { return b[:4] })
		if _, err := read(layer); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
	})
	r.Corrupt(nil)
	t.Run("of nobody", func(t *testing.T) {
		other := r.AddBlob([]byte("of another cluster"))
		var status *tunnel.StatusError
		if _, err := read(other); !errors.As(err, &status) || status.Problem.Reason != tunnel.ReasonNotOrdered {
			t.Errorf("got %v", err)
		}
	})
	t.Run("more than any layer may have", func(t *testing.T) {
		if _, err := read(tunnel.Layer{Digest: layer.Digest, Size: tunnel.MaxBlob + 1}); !errors.Is(err, tunnel.ErrTooLong) {
			t.Errorf("got %v", err)
		}
	})
	// Whatever went wrong, the few fetches there may be are free again.
	for range 2 * tunnel.MaxBlobFetches {
		if _, err := read(layer); err != nil {
			t.Fatal(err)
		}
	}
}

// slowReports takes reports when it is told to.
type slowReports struct {
	mu    sync.Mutex
	got   [][]tunnel.Report
	allow chan struct{}
	deny  bool
}

func (s *slowReports) Observe(ctx context.Context, _ tunnel.ClusterID, reports []tunnel.Report) tunnel.ReportsAnswer {
	select {
	case <-s.allow:
	case <-ctx.Done():
		return tunnel.ReportsAnswer{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, reports)
	answer := tunnel.ReportsAnswer{Taken: map[string]int64{}}
	for _, r := range reports {
		if !s.deny {
			answer.Taken[r.Release.UID] = r.Counter
		}
	}
	return answer
}

func TestReportsAreCoalescedKeptUntilTakenAndTheNewestWins(t *testing.T) {
	slow := &slowReports{allow: make(chan struct{})}
	r := setUp(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Reports = slow })
	stop := r.run(t)
	report := func(counter int64, inventory ...tunnel.InventoryEntry) {
		r.link.Report(tunnel.Report{Release: tunnel.ReleaseRef{UID: "a"}, Counter: counter, Inventory: inventory, AppliedRef: "x"})
	}
	report(1)
	slow.allow <- struct{}{} // the first goes out at once
	report(2, tunnel.InventoryEntry{Name: "object"})
	report(1) // late
	for counter := int64(3); counter <= 50; counter++ {
		report(counter)
	}
	slow.allow <- struct{}{}
	r.engine.wait(t, "the newest to be acknowledged", func() bool { return r.engine.acked["a"] == 50 })
	slow.mu.Lock()
	if n := len(slow.got); n != 2 {
		t.Errorf("50 reports went out in %d requests, want 2", n)
	}
	if last := slow.got[1][0]; last.Counter != 50 || len(last.Inventory) != 1 {
		t.Errorf("the last one has counter %d and %d inventory entries; the inventory was told once and not taken", last.Counter, len(last.Inventory))
	}
	slow.deny = true
	slow.mu.Unlock()

	report(51)
	slow.allow <- struct{}{} // not taken
	slow.mu.Lock()
	slow.deny = false
	slow.mu.Unlock()
	stop() // the agent's link is made anew by the same program
	go func() {
		for {
			select {
			case slow.allow <- struct{}{}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- r.link.Run(ctx) }()
	r.engine.wait(t, "what was not taken to be told again", func() bool { return r.engine.acked["a"] == 51 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnAgentFindsItsHubAgain(t *testing.T) {
	r := setUp(t)
	r.order(t, "a", 1)
	r.run(t)
	r.engine.wait(t, "the first order", func() bool { return r.engine.have["a"] == 1 })
	at := r.gateway.Addr().String()
	if err := r.stopHub(); err != nil {
		t.Fatal(err)
	}
	o := r.Options()
	o.Addr = at
	g, _, stop, err := gatewaytest.Start(r.ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	r.order(t, "a", 2)
	r.engine.wait(t, "an order of the hub that came back", func() bool { return r.engine.have["a"] == 2 })
	if !g.Sessions().Connected(r.id.UID) {
		t.Error("not in the table")
	}
}
