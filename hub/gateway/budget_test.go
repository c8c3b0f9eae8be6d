// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

const frameData = 0

// send writes a request on a new stream of a raw link. The body may be longer
// than what follows it.
func send(raw *tls.Conn, stream uint32, head string, body []byte) error {
	out := append(frame(frameWindow, flagSYN, stream, 0), frame(frameData, 0, stream, uint32(len(head)))...)
	out = append(out, head...)
	for len(body) > 0 {
		n := min(len(body), tunnel.FrameSize)
		out = append(append(out, frame(frameData, 0, stream, uint32(n))...), body[:n]...)
		body = body[n:]
	}
	_, err := raw.Write(out)
	return err
}

// press asks for a layer on as many streams as it may, sends a body with each that
// the hub does not read, and reads no answer.
func press(t *testing.T, r *rig, p *gatewaytest.Peer, digest string) {
	t.Helper()
	raw, err := p.Raw(r.ctx, p.Cert)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() {
		if err := raw.NetConn().Close(); err != nil {
			t.Log(err)
		}
	})
	hello := `{"targetUID":"` + p.Token.ClusterUID + `"}`
	err = send(raw, 1, fmt.Sprintf("POST /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(hello)), []byte(hello))
	for i := uint32(1); err == nil && i < tunnel.MaxStreams; i++ {
		if i == 1 {
			for !r.gateway.Sessions().Connected(p.Token.ClusterUID) {
				if r.ctx.Err() != nil {
					t.Error("a hostile agent got no session")
					return
				}
			}
		}
		body := make([]byte, tunnel.StreamWindow-tunnel.FrameSize)
		err = send(raw, 1+2*i, fmt.Sprintf("GET /v1/blobs/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", digest, len(body)), body)
	}
	if err != nil {
		t.Logf("cut off: %v", err)
	}
}

func TestThirtyTwoAgentsThatFillTheStreamsTogetherEndNoHonestSession(t *testing.T) {
	const hostile, budget = 32, 8 << 20
	r := start(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.StreamBudget = budget })
	layer := r.AddBlob(make([]byte, 4*tunnel.StreamWindow))
	other := r.honest(t, "honest")
	_, _, s, c := r.session(t, "large reports")
	var all sync.WaitGroup
	for i := range hostile {
		id, p := r.cluster(t, fmt.Sprintf("hostile-%d", i))
		if err := r.Order(id.UID, "r", 1, &layer, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Join(r.ctx, false); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { press(t, r, p, layer.Digest) })
	}
	pressed := make(chan struct{})
	go func() { defer close(pressed); all.Wait() }()
	large := tunnel.ReportsRequest{Reports: []tunnel.Report{{Release: tunnel.ReleaseRef{UID: strings.Repeat("x", 512<<10)}}}}
	for done := false; !done; {
		select {
		case <-pressed:
			done = true
		default:
		}
		if err := c.Call(r.ctx, http.MethodPost, "/v1/reports", large, nil); err != nil {
			t.Fatalf("an honest agent's report: %v (session: %v)", err, s.Broken())
		}
	}
	other.unharmed(t)
	live := 0
	for _, cluster := range r.Reachable() {
		if r.gateway.Sessions().Connected(cluster.UID) {
			live++
		}
	}
	if live >= hostile {
		t.Errorf("%d of %d hostile sessions live, though they hold more than the budget", live-2, hostile)
	}
}
