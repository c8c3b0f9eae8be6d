// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Frames of the multiplexer, as a hostile agent writes them: type, flags, stream.
func frame(kind byte, flags uint16, id, length uint32) []byte {
	f := make([]byte, 12)
	f[1] = kind
	binary.BigEndian.PutUint16(f[2:], flags)
	binary.BigEndian.PutUint32(f[4:], id)
	binary.BigEndian.PutUint32(f[8:], length)
	return f
}

const (
	frameWindow, framePing = 1, 2
	flagSYN, flagRST       = 1, 8
)

// honest is an agent that goes on working while others misbehave.
type honest struct {
	stop    chan struct{}
	ended   chan struct{}
	rounds  atomic.Int64
	trouble atomic.Pointer[error]
}

func (r *rig) honest(t *testing.T, name string) *honest {
	t.Helper()
	_, _, s, c := r.session(t, name)
	h := &honest{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		pings := time.NewTicker(time.Second) // twice a second is the limit
		defer pings.Stop()
		for {
			err := c.Call(r.ctx, http.MethodPost, "/v1/reports", tunnel.ReportsRequest{}, nil)
			select {
			case <-h.stop:
				return
			case <-pings.C:
				_, lost := s.Ping()
				err = errors.Join(err, lost)
			default:
			}
			if err != nil {
				h.trouble.Store(&err)
				return
			}
			h.rounds.Add(1)
		}
	}()
	return h
}

// unharmed ends it and tells whether it ever noticed anything.
func (h *honest) unharmed(t *testing.T) {
	t.Helper()
	for before := h.rounds.Load(); h.rounds.Load() < before+3; {
		select {
		case <-h.ended:
			t.Fatalf("another agent was harmed: %v", *h.trouble.Load())
		default:
			runtime.Gosched()
		}
	}
	close(h.stop)
	<-h.ended
	if err := h.trouble.Load(); err != nil {
		t.Errorf("another agent was harmed: %v", *err)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestFloodsOfFramesEndTheirSessionAndHarmNobodyElse(t *testing.T) {
	open := func(i uint32) []byte { return frame(frameWindow, flagSYN, 1+2*i, 0) }
	floods := map[string]func(i uint32) []byte{
		"SYN":            open,
		"ping":           func(uint32) []byte { return frame(framePing, flagSYN, 0, 1) },
		"open and reset": func(i uint32) []byte { return append(open(i), frame(frameWindow, flagRST, 1+2*i, 0)...) },
		"reset":          func(i uint32) []byte { return frame(frameWindow, flagRST, 1+2*i, 0) },
	}
	for name, of := range floods {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			other := r.honest(t, "honest")
			_, p := r.cluster(t, "hostile")
			if err := p.Join(r.ctx, false); err != nil {
				t.Fatal(err)
			}
			for _, endpoint := range []struct {
				name string
				cert *tls.Certificate
			}{{"session", p.Cert}, {"join", nil}} {
				before, held := runtime.NumGoroutine(), heap()
				raw, err := p.Raw(r.ctx, endpoint.cert)
				if err != nil {
					t.Fatal(err)
				}
				most := 0
				var sent uint32
				for ; sent < 200000; sent += 200 { // from a peer that does not read
					var chunk bytes.Buffer
					for i := range uint32(200) {
						chunk.Write(of(sent + i))
					}
					if _, err := raw.Write(chunk.Bytes()); err != nil {
						break
					}
					most = max(most, runtime.NumGoroutine()-before)
				}
				if sent >= 200000 {
					t.Errorf("%s: all of the flood was taken", endpoint.name)
				}
				// Its own few, one a stream that may be open or was just reset, and those of
				// a burst of pings.
				if limit := 2*tunnel.MaxStreams + tunnel.ResetBurst + tunnel.PingBurst + 24; most > limit {
					t.Errorf("%s: %d goroutines more, want %d at most", endpoint.name, most, limit)
				}
				if err := raw.NetConn().Close(); err != nil {
					t.Log(err)
				}
				if grown := heap() - held; grown > 4<<20 {
					t.Errorf("%s: %d bytes of heap more", endpoint.name, grown)
				}
			}
			other.unharmed(t)
		})
	}
}

// plug is a connection whose reader can stop.
type plug struct {
	net.Conn
	once   sync.Once
	pulled chan struct{}
	closed chan struct{}
}

func (p *plug) Read(b []byte) (int, error) {
	select {
	case <-p.pulled:
		<-p.closed
		return 0, net.ErrClosed
	default:
		return p.Conn.Read(b)
	}
}

func (p *plug) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}

func TestAPeerThatNeverReadsLosesItsSessionAndHoldsNobodyUp(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		good, g := agent("good")
		_, c := r.open(t, g)
		follow := orders(t, r, c, nil)
		defer follow.close()
		follow.set()

		bad, p := agent("never-reads")
		var plugs []*plug
		pulled := make(chan struct{})
		dial := p.Connect
		p.Connect = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			one := &plug{Conn: c, pulled: pulled, closed: make(chan struct{})}
			plugs = append(plugs, one)
			return one, err
		}
		s, pc := r.open(t, p)
		theirs := orders(t, r, pc, nil)
		theirs.set()
		before := runtime.NumGoroutine()
		close(pulled)
		layer := r.AddBlob([]byte("x"))
		for i := range 50 {
			uid := fmt.Sprintf("r%d", i)
			if err := errors.Join(r.Order(bad.UID, uid, int64(i+1), &layer, nil), r.Order(good.UID, uid, int64(i+1), &layer, nil)); err != nil {
				t.Fatal(err)
			}
			// The other hears of each, while the first is stuck.
			if got, _, _ := follow.set(); got[uid] != int64(i+1) {
				t.Fatalf("change %d: got %v", i, got)
			}
		}
		if n := runtime.NumGoroutine() - before; n > 8 {
			t.Errorf("%d goroutines wait for a peer that does not read", n)
		}
		pass(tunnel.WriteTimeout + 2*gateway.SweepInterval)
		synctest.Wait()
		if r.gateway.Sessions().Connected(bad.UID) {
			t.Error("it still has its session")
		}
		if !r.gateway.Sessions().Connected(good.UID) {
			t.Error("the other has lost its session")
		}
		for _, one := range plugs {
			if err := one.Close(); err != nil {
				t.Log(err)
			}
		}
		<-s.Done()
		theirs.close()
	})
}

func TestOneWhoNeverSaysHelloIsSentAway(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("mute")
		s, err := p.Open(r.ctx, p.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if r.gateway.Sessions().Connected(id.UID) {
			t.Error("is said to be connected before hello")
		}
		pass(gateway.HelloTimeout + time.Second)
		synctest.Wait()
		select {
		case <-s.Done():
		default:
			t.Error("still there")
		}
	})
}

// trickle is a body of which a byte comes now and then.
type trickle struct {
	every time.Duration
	left  int
	stop  chan struct{}
}

func (s *trickle) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.every):
	case <-s.stop:
		return 0, io.EOF
	}
	s.left--
	p[0] = ' '
	return 1, nil
}

func TestSixteenBodiesOfAByteASecondAreCutOffAndHoldNobodyUp(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		_, g := agent("good")
		_, good := r.open(t, g)
		_, p := agent("slow")
		s, c := r.open(t, p)
		began := time.Now()
		stop := make(chan struct{})
		var wait sync.WaitGroup
		var cut atomic.Int64
		for i := range tunnel.MaxStreams {
			wait.Go(func() {
				path, length := "/v1/reports", tunnel.MaxReportBodyLarge
				if i%2 == 1 {
					path, length = "/v1/held", tunnel.MaxHeldBody
				}
				req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, "http://x"+path, &trickle{time.Second, length, stop})
				if err != nil {
					t.Error(err)
					return
				}
				req.ContentLength = int64(length)
				resp, err := c.Do(req)
				if err == nil {
					if resp.StatusCode == http.StatusOK {
						t.Error("was taken")
					}
					err = resp.Body.Close()
				}
				if err != nil {
					t.Log(err)
				}
				cut.Add(1)
			})
		}
		pass(5 * time.Second)
		// All that is large goes on for others.
		big := tunnel.ReportsRequest{Reports: []tunnel.Report{{Release: tunnel.ReleaseRef{UID: strings.Repeat("x", tunnel.MaxReportBody+1)}}}}
		for range 3 {
			if err := good.Call(r.ctx, http.MethodPost, "/v1/reports", big, nil); err != nil {
				t.Errorf("another agent's large report: %v", err)
			}
		}
		wait.Wait()
		if took := time.Since(began); took > 2*tunnel.StallTimeout {
			t.Errorf("bodies of a byte a second were read for %s", took)
		}
		if cut.Load() != tunnel.MaxStreams {
			t.Errorf("%d of %d were cut off", cut.Load(), tunnel.MaxStreams)
		}
		if _, err := s.Ping(); err != nil {
			t.Errorf("the session was lost with its streams: %v", err)
		}
		close(stop)
		synctest.Wait()
	})
}

func TestAnswersThatNobodyReadsAreGivenUp(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		s, c := r.open(t, p)
		layer := r.AddBlob(make([]byte, 4*tunnel.StreamWindow))
		if err := r.Order(id.UID, "r", 1, &layer, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := runtime.NumGoroutine()
		var answers []io.ReadCloser
		for range tunnel.MaxStreams {
			req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, "http://x/v1/blobs/"+layer.Digest, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answers = append(answers, resp.Body)
		}
		pass(tunnel.StallTimeout + time.Second)
		if _, err := s.Ping(); err != nil {
			t.Errorf("the session was lost with its streams: %v", err)
		}
		for _, body := range answers {
			n, err := io.Copy(io.Discard, body)
			if err == nil || n >= layer.Size {
				t.Errorf("an answer that was not read in time came whole: %d bytes, %v", n, err)
			}
			body.Close()
		}
		pass(tunnel.StreamCloseTimeout + time.Second)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 4 {
			t.Errorf("%d goroutines are left of it", n)
		}
	})
}

func TestASessionLeadsToTheHubsOwnRoutesAndNowhereElse(t *testing.T) {
	r := start(t)
	other, _, _, _ := r.session(t, "other")
	_, _, _, c := r.session(t, "edge")
	for _, try := range []struct{ method, path string }{
		{http.MethodGet, "/"}, {http.MethodGet, "/v1/join"}, {http.MethodPost, "/v1/join"}, {http.MethodGet, "/v1/session"},
		{http.MethodGet, "/v1/releases/" + other.UID}, {http.MethodGet, "/v1/clusters/" + other.UID}, {http.MethodGet, "/apis"}, {http.MethodGet, "/metrics"},
		{http.MethodDelete, "/v1/orders"}, {http.MethodPut, "/v1/reports"},
	} {
		req, err := http.NewRequestWithContext(r.ctx, try.method, "http://169.254.169.254/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Path = try.path
		for name, value := range map[string]string{
			"Upgrade": "websocket", "Connection": "Upgrade", "X-Remote-User": "admin", "X-Remote-Group": "system:masters", "Impersonate-User": "admin", "X-Forwarded-For": "127.0.0.1",
		} {
			req.Header.Set(name, value)
		}
		resp, err := c.Do(req)
		if errors.Is(err, tunnel.ErrRedirect) {
			t.Errorf("%s %s leads elsewhere: %v", try.method, try.path, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: got %d", try.method, try.path, resp.StatusCode)
		}
		resp.Body.Close()
	}
}
