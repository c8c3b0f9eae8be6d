// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// bareHub is the far end of sessions and nothing else: it says exactly what a test
// wants, also what no hub would.
type bareHub struct {
	id      string
	cluster tunnel.ClusterID
	url     string

	mu       sync.Mutex
	issuer   tunnel.Issuer // of what it shows and of agents' certificates
	accepted []*x509.Certificate
	orderKey ed25519.PrivateKey
	answer   func(*tunnel.HelloAnswer)      // changes the answer to hello
	lines    []tunnel.OrderEvent            // of each orders stream
	held     func([]tunnel.Signed) int      // status of POST /v1/held
	refuse   *tunnel.Problem                // 403 on hello
	hellos   []tunnel.Hello                 // as they came
	live     map[*tunnel.Session]struct{}   // sessions
	streams  map[chan tunnel.OrderEvent]any // orders streams
	changed  chan struct{}
}

func newIssuer(t *testing.T, hub string) tunnel.Issuer {
	t.Helper()
	ca, signer, err := gatewaytest.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return tunnel.Issuer{Hub: hub, CA: ca, Signer: signer}
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(keys ...ed25519.PrivateKey) [][]byte {
	var out [][]byte
	for _, k := range keys {
		out = append(out, k.Public().(ed25519.PublicKey))
	}
	return out
}

func pemOf(certs ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

func newBareHub(t *testing.T) *bareHub {
	t.Helper()
	h := &bareHub{
		id: "0123456789abcdef", cluster: tunnel.ClusterID{Namespace: "fleet", Name: "edge-1", UID: "cluster-1"}, orderKey: newKey(t),
		live: map[*tunnel.Session]struct{}{}, streams: map[chan tunnel.OrderEvent]any{}, changed: make(chan struct{}),
	}
	h.issuer = newIssuer(t, h.id)
	h.accepted = []*x509.Certificate{h.issuer.CA}
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{tunnel.Subprotocol}})
		if err != nil {
			return // Accept has answered
		}
		conn, err := tunnel.NewConn(ws, &net.TCPAddr{}, &net.TCPAddr{})
		if err != nil {
			t.Error(err)
			return
		}
		ctx := context.WithoutCancel(r.Context())
		running.Go(func() { h.serve(ctx, conn) })
	}))
	h.url = strings.Replace(server.URL, "http://", "ws://", 1)
	t.Cleanup(func() {
		server.Close()
		h.cut()
		running.Wait()
	})
	return h
}

func (h *bareHub) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait until ok holds, which is asked under the hub's lock.
func (h *bareHub) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await(t, what, func() (bool, <-chan struct{}) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return ok(), h.changed
	})
}

// serve one session.
func (h *bareHub) serve(ctx context.Context, conn *tunnel.Conn) {
	h.mu.Lock()
	issuer, pool := h.issuer, x509.NewCertPool()
	for _, ca := range h.accepted {
		pool.AddCert(ca)
	}
	h.mu.Unlock()
	cfg, err := tunnel.SessionServerConfig(h.id, pool, func() (*tls.Certificate, error) {
		return issuer.Server([]string{tunnel.HubServerName(h.id)}, time.Now())
	}, time.Now)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tunnel.HandshakeTimeout)
	defer cancel()
	s, err := tunnel.ServerSession(ctx, conn, cfg, tunnel.MuxOptions{})
	if err != nil {
		return
	}
	h.change(func() { h.live[s] = struct{}{} })
	server := tunnel.NewServer(h.routes(s), func(ctx context.Context, _ any) context.Context { return ctx })
	if err := server.Serve(tunnel.Listener(s)); err != nil {
		h.change(func() { delete(h.live, s) })
	}
	if err := errors.Join(s.Close(), server.Close()); err != nil {
		return // it had ended
	}
}

func (h *bareHub) routes(s *tunnel.Session) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/hello", func(w http.ResponseWriter, r *http.Request) {
		var hello tunnel.Hello
		if err := tunnel.DecodeJSON(r.Body, tunnel.MaxHelloBody, &hello); err != nil {
			tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, err.Error(), 0)
			return
		}
		var answer tunnel.HelloAnswer
		var refuse *tunnel.Problem
		h.change(func() {
			h.hellos = append(h.hellos, hello)
			answer = tunnel.HelloAnswer{Hub: h.id, Now: time.Now(), OrderKeys: public(h.orderKey), HubCA: pemOf(h.issuer.CA)}
			if h.answer != nil {
				h.answer(&answer)
			}
			refuse = h.refuse
		})
		if refuse != nil {
			tunnel.WriteProblem(w, http.StatusForbidden, refuse.Reason, refuse.Message, 0)
			return
		}
		tunnel.WriteJSON(w, answer)
	})
	mux.HandleFunc("POST /v1/orders", func(w http.ResponseWriter, r *http.Request) {
		feed := make(chan tunnel.OrderEvent, 64)
		h.change(func() {
			for _, line := range h.lines {
				feed <- line
			}
			h.streams[feed] = nil
		})
		defer h.change(func() { delete(h.streams, feed) })
		control := http.NewResponseController(w)
		for {
			if err := control.Flush(); err != nil {
				return
			}
			select {
			case event := <-feed:
				if err := json.NewEncoder(w).Encode(event); err != nil {
					return
				}
			case <-r.Context().Done():
				return
			case <-s.Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /v1/held", func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil || len(raw) > tunnel.MaxHeldBody {
			tunnel.WriteProblem(w, http.StatusRequestEntityTooLarge, tunnel.ReasonTooLong, "too long", 0)
			return
		}
		var req tunnel.HeldRequest
		if err := json.Unmarshal(raw, &req); err != nil {
			tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, err.Error(), 0)
			return
		}
		code := http.StatusOK
		h.change(func() { code = h.held(req.Orders) })
		if code != http.StatusOK {
			tunnel.WriteProblem(w, code, tunnel.ReasonInternal, "not now", 0)
			return
		}
		tunnel.WriteJSON(w, struct{}{})
	})
	return mux
}

// say sends a line on each open orders stream.
func (h *bareHub) say(event tunnel.OrderEvent) {
	h.change(func() {
		for feed := range h.streams {
			feed <- event
		}
	})
}

// cut ends all sessions as a dying hub does.
func (h *bareHub) cut() {
	h.mu.Lock()
	sessions := make([]*tunnel.Session, 0, len(h.live))
	for s := range h.live {
		sessions = append(sessions, s)
	}
	h.mu.Unlock()
	for _, s := range sessions {
		if s.Close() != nil {
			continue // it had ended
		}
	}
}

func (h *bareHub) sign(t *testing.T, uid string, sequence int64) tunnel.Signed {
	t.Helper()
	signed, err := tunnel.SignJSON(tunnel.TypeOrder, tunnel.Order{
		Verb: tunnel.VerbRemove, Hub: h.id, ClusterUID: h.cluster.UID, Sequence: sequence, Release: tunnel.ReleaseRef{UID: uid},
	}, h.orderKey)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// identity as a join would have left it.
func (h *bareHub) identity(t *testing.T) *link.Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public1, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := h.issuer.Prepare(h.cluster, "bound", public1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := h.issuer.Sign(prepared)
	if err != nil {
		t.Fatal(err)
	}
	return &link.Identity{
		Hub: h.id, ClusterUID: h.cluster.UID, GatewayURL: h.url, CAPin: tunnel.CAPin(h.issuer.CA), HubCA: pemOf(h.issuer.CA),
		OrderKeys: public(h.orderKey), BoundKey: newKey(t).Seed(), ClientKey: private, Certificate: cert,
	}
}

// holder is what an engine that lost nothing has.
type holder struct {
	orders map[string]tunnel.Signed
	layers map[string][]byte
}

func (h *holder) Held(uids []string) []tunnel.Signed {
	var out []tunnel.Signed
	for _, uid := range uids {
		if signed, ok := h.orders[uid]; ok {
			out = append(out, signed)
		}
	}
	return out
}

func (h *holder) Layer(_ context.Context, digest string) (io.ReadCloser, int64, error) {
	raw, ok := h.layers[digest]
	if !ok {
		return nil, 0, link.ErrNotHeld
	}
	return io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil
}

// agent is an agent of a bareHub.
type agent struct {
	engine   *engine
	store    *store
	registry *prometheus.Registry
	options  link.Options
	link     *link.Link
	ended    chan error
	stop     func()
}

func newAgent(t *testing.T, h *bareHub) *agent {
	t.Helper()
	quick := link.QuickBackoff()
	a := &agent{engine: newEngine(), store: &store{id: h.identity(t)}, registry: prometheus.NewRegistry(), ended: make(chan error, 1)}
	a.options = link.Options{
		Engine: a.engine, Reporting: a.engine, Identity: a.store, Backoff: &quick, Registerer: a.registry,
		Hello: func(context.Context) (tunnel.Hello, error) { return tunnel.Hello{AgentVersion: "v0"}, nil },
	}
	return a
}

func (a *agent) run(t *testing.T) {
	t.Helper()
	l, err := link.New(a.options)
	if err != nil {
		t.Fatal(err)
	}
	a.link = l
	ctx, cancel := context.WithCancel(verbose(t))
	go func() { a.ended <- l.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(a.stop)
}

// value of a metric with these label values; false when there is none.
func (a *agent) value(t *testing.T, name string, labels ...string) (float64, bool) {
	t.Helper()
	families, err := a.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetValue())
			}
			if slices.Equal(have, labels) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}
