// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestOrdersThatTheHubLacksAreAskedForInLinesOfBoundedLength(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		layer := r.AddBlob([]byte("x"))
		if err := errors.Join(r.Order(id.UID, "same", 5, &layer, nil), r.Order(id.UID, "older-here", 5, &layer, nil), r.Order(id.UID, "newer-here", 5, &layer, nil)); err != nil {
			t.Fatal(err)
		}
		have := map[string]int64{"same": 5, "older-here": 6, "newer-here": 4}
		want := []string{"older-here"}
		for i := range 2 * tunnel.MaxPresent {
			uid := fmt.Sprintf("unknown-%04d", i)
			have[uid] = 1
			want = append(want, uid)
		}
		_, c := r.open(t, p)
		s := orders(t, r, c, have)
		defer s.close()
		s.set()
		var asked []string
		for len(asked) < len(want) {
			e := s.next()
			if len(e.Present) == 0 || len(e.Present) > tunnel.MaxPresent {
				t.Fatalf("a line asks for %d orders: %+v", len(e.Present), e)
			}
			asked = append(asked, e.Present...)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
		// A change asks for nothing again.
		if err := r.Order(id.UID, "same", 6, &layer, nil); err != nil {
			t.Fatal(err)
		}
		s.set()
		if e := s.next(); !e.Beat {
			t.Errorf("after a change: %+v", e)
		}
	})
}

// flaky fails as long as it is told to.
type flaky struct {
	gateway.Held
	fails atomic.Bool
}

func (f *flaky) Take(ctx context.Context, cluster tunnel.ClusterID, orders []tunnel.Signed) error {
	if f.fails.Load() {
		return errors.New("storage is away")
	}
	return f.Held.Take(ctx, cluster, orders)
}

func TestOrdersThatAnAgentGivesBackAreHandedOnWithinLimits(t *testing.T) {
	var held *flaky
	r := start(t, func(h *gatewaytest.Hub, o *gateway.Options) { held = &flaky{Held: h}; o.Held = held })
	id, _, _, c := r.session(t, "edge")
	some := func(n, size int) tunnel.HeldRequest {
		var q tunnel.HeldRequest
		for range n {
			q.Orders = append(q.Orders, tunnel.Signed{Type: tunnel.TypeOrder, Payload: make([]byte, size)})
		}
		return q
	}
	give := func(q tunnel.HeldRequest) string { return reason(c.Call(r.ctx, http.MethodPost, "/v1/held", q, nil)) }
	if got := give(some(tunnel.MaxHeld, 10000)); got != "" {
		t.Errorf("as many as are allowed: got %q", got)
	}
	if got := give(some(tunnel.MaxHeld+1, 10)); got != tunnel.ReasonBadRequest {
		t.Errorf("one more: got %q", got)
	}
	if got := give(some(1, tunnel.MaxHeldBody)); got != tunnel.ReasonBadRequest {
		t.Errorf("too long: got %q", got)
	}
	held.fails.Store(true)
	var status *tunnel.StatusError
	if err := c.Call(r.ctx, http.MethodPost, "/v1/held", some(1, 10), nil); !errors.As(err, &status) || status.Code != http.StatusServiceUnavailable || status.RetryAfter == 0 {
		t.Errorf("when they cannot be recorded: got %v", err)
	}
	if got, err := r.Taken(r.ctx, id.UID, tunnel.MaxHeld); err != nil || len(got) != tunnel.MaxHeld {
		t.Errorf("%d were handed on, %v", len(got), err)
	}
}

func TestALayerIsHadBackFromTheAgentThatHoldsIt(t *testing.T) {
	r := start(t)
	id, _, s, _ := r.session(t, "edge")
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	handler := http.NewServeMux()
	handler.HandleFunc("GET /v1/blobs/{digest}", func(w http.ResponseWriter, req *http.Request) {
		switch req.PathValue("digest") {
		case digest("a"):
			if _, err := io.WriteString(w, "the layer"); err != nil {
				t.Error(err)
			}
		case digest("b"):
			tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNotFound, "not held", 0)
		case digest("c"):
			w.Header().Set("Content-Length", strconv.Itoa(tunnel.MaxBlob+1))
		case digest("d"):
			http.Redirect(w, req, "http://169.254.169.254/", http.StatusFound)
		case digest("e"): // no length
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Log(err) // the hub may have hung up by now
			}
		}
	})
	server := tunnel.NewServer(handler, func(ctx context.Context, _ any) context.Context { return ctx })
	served := make(chan error, 1)
	go func() { served <- server.Serve(tunnel.Listener(s)) }()
	blob, size, err := r.gateway.Sessions().Fetch(r.ctx, id.UID, digest("a"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(blob)
	if err := errors.Join(err, blob.Close()); err != nil || string(body) != "the layer" || size != int64(len(body)) {
		t.Errorf("got %q of %d bytes, %v", body, size, err)
	}
	for what, want := range map[string]error{
		digest("b"): gateway.ErrNotHeld, digest("c"): tunnel.ErrTooLong, digest("d"): tunnel.ErrRedirect, digest("e"): tunnel.ErrTooLong,
		"../../v1/sync/x": gateway.ErrNotHeld,
	} {
		blob, _, err := r.gateway.Sessions().Fetch(r.ctx, id.UID, what)
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
		if err == nil {
			blob.Close()
		}
	}
	if _, _, err := r.gateway.Sessions().Fetch(r.ctx, "nobody", digest("a")); !errors.Is(err, gateway.ErrAway) {
		t.Errorf("of a cluster that is away: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err == nil {
		t.Error("the agent's server ended without a reason")
	}
	if err := server.Shutdown(r.ctx); err != nil {
		t.Error(err)
	}
}
