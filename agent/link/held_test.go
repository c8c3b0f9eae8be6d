// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestAHubThatAsksForItsOrdersGetsAllThatAreHeldInSmallRequests(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	held := &holder{orders: map[string]tunnel.Signed{}}
	a.options.Holder = held
	var uids []string
	for i := range 300 {
		uid := fmt.Sprintf("release-%d", i)
		uids = append(uids, uid)
		if i%10 != 0 { // the rest is not held any more
			held.orders[uid] = h.sign(t, uid, int64(i+1))
		}
	}
	big := h.sign(t, "big", 1)
	big.Payload = bytes.Repeat([]byte("x"), 1<<20) // as long as an order can come in; in base64 it is longer
	for i := range 4 {
		uid := fmt.Sprintf("big-%d", i)
		uids = append(uids, uid)
		held.orders[uid] = big
	}
	got, most, requests, fail := 0, 0, 0, 1
	h.held = func(orders []tunnel.Signed) int {
		requests++
		if fail > 0 {
			fail--
			return http.StatusServiceUnavailable // it has to write first
		}
		most = max(most, len(orders))
		got += len(orders)
		return http.StatusOK
	}
	h.lines = []tunnel.OrderEvent{{Present: uids[:200]}, {Present: uids[200:]}, {Present: uids[:10]}}
	a.run(t)
	h.wait(t, "all orders given back", func() bool { return got >= len(held.orders) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if most > tunnel.MaxHeld {
		t.Errorf("%d orders in one request, want %d at most", most, tunnel.MaxHeld)
	}
	if got != len(held.orders) {
		t.Errorf("%d orders given back, want %d, each once", got, len(held.orders))
	}
	if n, _ := a.value(t, "convoy_link_held_orders_total", "given"); n > float64(got) {
		t.Errorf("counted %v", n)
	}
}

func TestOrdersThatTheHubAskedForAndRefusesAreNotSentForEver(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	a.options.Holder = &holder{orders: map[string]tunnel.Signed{"a": h.sign(t, "a", 1), "b": h.sign(t, "b", 1)}}
	requests := map[string]int{}
	h.held = func(orders []tunnel.Signed) int {
		for _, o := range orders {
			order, err := tunnel.ParseOrder(o.Payload)
			if err != nil {
				t.Error(err)
			}
			requests[order.Release.UID]++
		}
		return http.StatusForbidden
	}
	h.lines = []tunnel.OrderEvent{{Present: []string{"a"}}}
	a.run(t)
	h.wait(t, "the first request", func() bool { return requests["a"] == 1 })
	h.wait(t, "a stream", func() bool { return len(h.streams) == 1 })
	h.say(tunnel.OrderEvent{Present: []string{"b"}})
	h.wait(t, "the second request", func() bool { return requests["b"] == 1 })
	h.mu.Lock()
	defer h.mu.Unlock()
	if requests["a"] != 1 {
		t.Errorf("asked %d times about what was refused", requests["a"])
	}
}

func TestAnAgentThatHoldsNothingBackAnswersNothing(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	h.lines = []tunnel.OrderEvent{{Present: []string{"a"}}, {Order: ptr(h.sign(t, "b", 1))}}
	a.run(t)
	a.engine.wait(t, "the order after it", func() bool { return a.engine.have["b"] == 1 })
}

func ptr[T any](v T) *T { return &v }

func TestLayersThatTheHubLostAreGivenBack(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	layer := bytes.Repeat([]byte("content of a layer "), 200000) // does not fit into one window
	digest := "sha256:" + string(bytes.Repeat([]byte("a"), 64))
	other := "sha256:" + string(bytes.Repeat([]byte("b"), 64))
	a.options.Holder = &holder{layers: map[string][]byte{digest: layer}}
	a.run(t)
	h.wait(t, "a session", func() bool { return len(h.streams) == 1 })
	h.mu.Lock()
	var session *tunnel.Session
	for s := range h.live {
		session = s
	}
	h.mu.Unlock()
	get := func(path string) (int, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/v1/blobs/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tunnel.NewClient(session).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK && resp.ContentLength != int64(len(body)) {
			t.Errorf("its length was not told")
		}
		return resp.StatusCode, body
	}
	for range 3 { // no place is lost
		if code, got := get(digest); code != http.StatusOK || !bytes.Equal(got, layer) {
			t.Fatalf("got %d and %d bytes", code, len(got))
		}
	}
	for _, path := range []string{other, "no-digest", "..%2f..%2fsecrets"} {
		if code, _ := get(path); code != http.StatusNotFound {
			t.Errorf("%s: got %d", path, code)
		}
	}
}
