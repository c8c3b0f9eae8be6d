// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestARecordingSeesThroughTheMaskOfAWebsocket makes sure that the recordings of
// the other tests are not blind: clients mask what they send.
func TestARecordingSeesThroughTheMaskOfAWebsocket(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow() //nolint:errcheck // the test is over
		ws.SetReadLimit(1 << 20)
		kind, text, err := ws.Read(r.Context())
		if err == nil {
			err = ws.Write(r.Context(), kind, append([]byte("heard "), text...))
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	here := shared.network(ctx, t, "recorded")
	record := &recording{}
	tap, err := newTap(ctx, here, "127.0.0.1:"+tapPort, nil, server.Listener.Addr().String(), record.open)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: here.dial}}
	ws, _, err := websocket.Dial(ctx, "ws://127.0.0.1:"+tapPort+"/said", &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // the library does that
	if err != nil {
		t.Fatal(err)
	}
	// Longer than what fits a short frame, and than one read.
	said := bytes.Repeat([]byte("in the clear "), 8<<10)
	ws.SetReadLimit(1 << 20)
	if err := ws.Write(ctx, websocket.MessageBinary, said); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(ctx); err != nil {
		t.Fatal(err)
	}
	ws.CloseNow() //nolint:errcheck // nothing more is to be said
	if err := tap.close(); err != nil {
		t.Fatal(err)
	}
	all := record.bytes()
	for _, want := range [][]byte{[]byte("GET /said HTTP/1.1"), said, append([]byte("heard "), said...)} {
		if !bytes.Contains(all, want) {
			t.Errorf("the recording of %d bytes does not have %.40q", len(all), want)
		}
	}
	if _, err := records(record.talks[0].up.messages.Bytes()); err == nil {
		t.Error("text passes for TLS")
	}
}
