// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// fake runs a test under a fake clock, with a gateway on a listener in memory.
func fake(t *testing.T, test func(t *testing.T, r *rig, agent func(name string) (tunnel.ClusterID, *gatewaytest.Peer))) {
	t.Helper()
	gatewaytest.FakeClock(t, func(t *testing.T) {
		pipes := gatewaytest.NewPipes()
		r := start(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Listener, o.Plain = pipes, true })
		r.pipes = pipes
		test(t, r, func(name string) (tunnel.ClusterID, *gatewaytest.Peer) {
			t.Helper()
			id, p := r.cluster(t, name)
			p.Connect = pipes.Dial
			p.Token.Gateway = "ws://hub.example"
			if err := p.Join(r.ctx, false); err != nil {
				t.Fatal(err)
			}
			return id, p
		})
	})
}

// pass lets time go by; under the fake clock that takes none.
func pass(d time.Duration) { <-time.After(d) }

// stream reads an orders stream line by line.
type stream struct {
	t     *testing.T
	lines *bufio.Reader
	close func()
}

func orders(t *testing.T, r *rig, c *tunnel.Client, have map[string]int64) *stream {
	t.Helper()
	raw, err := json.Marshal(tunnel.OrdersRequest{Have: have})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, "http://x/v1/orders", strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req) //nolint:bodyclose // closed by the stream's close
	if err != nil {
		t.Fatal(err)
	}
	return &stream{t: t, lines: bufio.NewReader(resp.Body), close: func() {
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}}
}

func (s *stream) next() tunnel.OrderEvent {
	s.t.Helper()
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	var e tunnel.OrderEvent
	if err := json.Unmarshal(line, &e); err != nil {
		s.t.Fatal(err)
	}
	return e
}

// set reads up to a head and returns the orders, by Release UID, and the rest.
func (s *stream) set() (got map[string]int64, unknown []string, head tunnel.Head) {
	s.t.Helper()
	got = map[string]int64{}
	for {
		e := s.next()
		switch {
		case e.Order != nil:
			o, err := tunnel.ParseOrder(e.Order.Payload)
			if err != nil {
				s.t.Fatal(err)
			}
			got[o.Release.UID] = o.Sequence
		case e.Head != nil:
			head, err := tunnel.ParseHead(e.Head.Payload)
			if err != nil {
				s.t.Fatal(err)
			}
			return got, unknown, head
		default:
			unknown = append(unknown, e.Unknown...)
		}
	}
}

func TestTheOrdersStreamSendsWhatTheAgentLacksAndThenChanges(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		layer := r.AddBlob([]byte("x"))
		order := func(uid string, sequence int64) {
			t.Helper()
			if err := r.Order(id.UID, uid, sequence, &layer, nil); err != nil {
				t.Fatal(err)
			}
		}
		order("has", 5)
		order("old", 6)
		order("new", 7)
		order("ahead", 8)
		_, c := r.open(t, p)
		s := orders(t, r, c, map[string]int64{"has": 5, "old": 2, "ahead": 99, "beyond": 4})
		defer s.close()
		got, unknown, head := s.set()
		if diff := cmp.Diff(map[string]int64{"old": 6, "new": 7, "ahead": 8}, got); diff != "" {
			t.Errorf("first orders (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"beyond"}, unknown); diff != "" {
			t.Errorf("unknown to the hub (-want +got):\n%s", diff)
		}
		all := map[string]int64{"has": 5, "old": 6, "new": 7, "ahead": 8}
		if head.Hash != tunnel.HashOrders(all) || head.Count != 4 {
			t.Errorf("the head does not prove the four orders: %+v", head)
		}
		if diff := cmp.Diff([]string{"ahead", "beyond"}, s.next().Present); diff != "" {
			t.Errorf("asked to give back (-want +got):\n%s", diff)
		}
		began := time.Now()
		if e := s.next(); !e.Beat || time.Since(began) > tunnel.BeatInterval {
			t.Errorf("after %s: %+v, want a beat", time.Since(began), e)
		}
		order("new", 70)
		r.Drop(id.UID, "has")
		if got, _, _ := s.set(); got["new"] != 70 {
			t.Errorf("a change sends %v", got)
		}
		synctest.Wait()
		order("later", 1)
		got, unknown, head = s.set()
		for head.Hash != tunnel.HashOrders(map[string]int64{"old": 6, "new": 70, "ahead": 8, "later": 1}) {
			more, also, h := s.set()
			for uid, sequence := range more {
				got[uid] = sequence
			}
			unknown, head = append(unknown, also...), h
		}
		if got["later"] != 1 {
			t.Errorf("the last change sends %v", got)
		}
		if slices.Contains(unknown, "later") {
			t.Errorf("what was just sent is unknown: %v", unknown)
		}
	})
}

func TestANewOrdersStreamReplacesTheOneBefore(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		_, p := agent("edge")
		_, c := r.open(t, p)
		first := orders(t, r, c, nil)
		defer first.close()
		first.set()
		second := orders(t, r, c, nil)
		defer second.close()
		second.set()
		if _, err := io.ReadAll(first.lines); err != nil {
			t.Errorf("the first stream did not end in order: %v", err)
		}
		if e := second.next(); !e.Beat {
			t.Errorf("got %+v", e)
		}
	})
}

func TestASilentAgentIsCutOffAndItsClusterSaidToBeAwayAfterTheGrace(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		s, _ := r.open(t, p)
		reachable := func() bool { c, _ := r.ByUID(id.UID); return c.Status.Reachable }
		writes := r.Writes()

		pass(tunnel.ReadSilence - time.Second)
		if _, err := s.Ping(); err != nil {
			t.Fatalf("an agent that says something in time: %v", err)
		}
		pass(tunnel.ReadSilence + gateway.SweepInterval + time.Second)
		synctest.Wait()
		if r.gateway.Sessions().Connected(id.UID) {
			t.Fatal("a silent session lives on")
		}
		if !reachable() {
			t.Error("said to be away at once")
		}
		// A blip: back before the grace is over.
		pass(gateway.Grace / 2)
		again, _ := r.open(t, p)
		pass(gateway.Grace/2 + time.Second)
		if !reachable() || r.Writes() != writes {
			t.Errorf("a blip: reachable %v, %d writes", reachable(), r.Writes()-writes)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		pass(gateway.Grace - 2*time.Second)
		if !reachable() {
			t.Error("said to be away before the grace is over")
		}
		pass(2*time.Second + gateway.ReachableInterval + time.Second)
		if reachable() || r.Writes() != writes+1 {
			t.Errorf("after the grace: reachable %v, %d writes, want 1", reachable(), r.Writes()-writes)
		}
		pass(time.Hour)
		if r.Writes() != writes+1 {
			t.Errorf("an hour away costs %d writes more", r.Writes()-writes-1)
		}
		if _, _ = r.open(t, p); !reachable() {
			t.Error("not reachable after its return")
		}
	})
}

func TestAHubThatRestartsGivesItsAgentsTimeToReturn(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, _ := agent("edge")
		if err := r.Update(r.ctx, id, setReachable); err != nil {
			t.Fatal(err)
		}
		pass(gateway.ReturnGrace - time.Second)
		if c, _ := r.ByUID(id.UID); !c.Status.Reachable {
			t.Error("said to be away too soon")
		}
		pass(gateway.ReachableInterval + 2*time.Second)
		if c, _ := r.ByUID(id.UID); c.Status.Reachable {
			t.Error("an agent that never came back is said to be there")
		}
	})
}

func TestASessionEndsWithItsClusterAndWithItsCertificate(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("deleted")
		s, _ := r.open(t, p)
		r.DeleteCluster(id.UID)
		pass(2*gateway.SweepInterval + time.Second)
		synctest.Wait()
		select {
		case <-s.Done():
		default:
			t.Error("a session outlives its Cluster")
		}

		_, p = agent("expires")
		s, _ = r.open(t, p)
		for range int(tunnel.CertificateTTL / tunnel.PingInterval) {
			pass(tunnel.PingInterval)
			if _, err := s.Ping(); err != nil {
				break
			}
		}
		synctest.Wait()
		select {
		case <-s.Done():
		default:
			t.Error("a session outlives its certificate")
		}
	})
}

func TestABodyThatTricklesIsCutOff(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		_, p := agent("edge")
		s, c := r.open(t, p)
		began := time.Now()
		// A header that never ends.
		raw, err := s.Open(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(raw, "POST /v1/reports HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(raw); err != nil {
			t.Log(err)
		}
		if took := time.Since(began); took > tunnel.HeaderTimeout+time.Second {
			t.Errorf("a header without an end was waited for %s", took)
		}
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
		// A body that stops.
		began = time.Now()
		pr, pw := io.Pipe()
		ctx, cancel := context.WithCancel(r.ctx)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/v1/reports", pr)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 1000
		go func() {
			if _, err := io.WriteString(pw, `{"reports":[`); err != nil {
				t.Log(err)
			}
		}()
		resp, err := c.Do(req)
		if err == nil {
			if resp.StatusCode == http.StatusOK {
				t.Error("half a body was taken")
			}
			err = resp.Body.Close()
		}
		if took := time.Since(began); took > tunnel.StallTimeout+5*time.Second {
			t.Errorf("a body that stops was waited for %s, %v", took, err)
		}
		if err := errors.Join(pr.Close(), pw.Close()); err != nil {
			t.Error(err)
		}
		if _, err := s.Ping(); err != nil {
			t.Errorf("the session was lost with its stream: %v", err)
		}
	})
}
