// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"crypto/ed25519"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// clock that a test can set.
type clock struct{ at atomic.Int64 }

func newClock() *clock               { c := &clock{}; c.at.Store(time.Now().UnixNano()); return c }
func (c *clock) now() time.Time      { return time.Unix(0, c.at.Load()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

func withClock(c *clock) func(*gatewaytest.Hub, *gateway.Options) {
	return func(h *gatewaytest.Hub, o *gateway.Options) { h.Now, o.Now = c.now, c.now }
}

// notices are what people are told of.
type notices struct {
	mu   sync.Mutex
	told []string
}

func (n *notices) take(_ *gatewaytest.Hub, o *gateway.Options) {
	o.Notice = func(id tunnel.ClusterID, reason, _ string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.told = append(n.told, id.UID+" "+reason)
	}
}

func (n *notices) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.told)
}

func TestATokenMakesOneAgentAndNoOther(t *testing.T) {
	clock := newClock()
	told := &notices{}
	r := start(t, withClock(clock), told.take)

	t.Run("used twice", func(t *testing.T) {
		id, first := r.cluster(t, "used")
		if err := first.Join(r.ctx, false); err != nil {
			t.Fatal(err)
		}
		second, err := r.NewPeer(first.Token)
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(second.Join(r.ctx, false)); got != tunnel.ReasonTokenUsed {
			t.Errorf("got %q", got)
		}
		if diff := cmp.Diff([]string{id.UID + " " + v1alpha1.ReasonTokenReused}, told.all()); diff != "" {
			t.Errorf("people were told (-want +got):\n%s", diff)
		}
		c, _ := r.ByUID(id.UID)
		if c.Status.Join != nil || c.Status.Agent == nil || c.Status.Agent.CertificateSerial == "" {
			t.Errorf("recorded as %+v", c.Status)
		}
	})
	t.Run("expired", func(t *testing.T) {
		_, p := r.cluster(t, "expired")
		clock.add(time.Hour)
		if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonTokenExpired {
			t.Errorf("got %q", got)
		}
	})
	t.Run("of another seed", func(t *testing.T) {
		_, p := r.cluster(t, "wrong")
		p.Token.Seed = make([]byte, ed25519.SeedSize)
		if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonTokenUnknown {
			t.Errorf("got %q", got)
		}
	})
	t.Run("of another cluster", func(t *testing.T) {
		_, p := r.cluster(t, "one")
		other, _ := r.cluster(t, "other")
		p.Token.ClusterUID = other.UID
		if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonTokenUnknown {
			t.Errorf("got %q", got)
		}
	})
	t.Run("of a cluster that is gone", func(t *testing.T) {
		id, p := r.cluster(t, "gone")
		r.DeleteCluster(id.UID)
		if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonTokenUnknown {
			t.Errorf("got %q", got)
		}
	})
	t.Run("replaced by a newer token", func(t *testing.T) {
		id, p := r.cluster(t, "replaced")
		if _, err := r.NewToken(id, r.url, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonTokenUnknown {
			t.Errorf("got %q", got)
		}
	})
	t.Run("repeated with the same keys, since the answer was lost", func(t *testing.T) {
		_, p := r.cluster(t, "again")
		before := len(told.all())
		if err := errors.Join(p.Join(r.ctx, false), p.Join(r.ctx, false)); err != nil {
			t.Fatal(err)
		}
		if more := told.all()[before:]; len(more) > 0 {
			t.Errorf("people were told %v", more)
		}
		r.open(t, p)
		clock.add(tunnel.TokenTTL + time.Second)
		if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonTokenExpired {
			t.Errorf("after its time: got %q", got)
		}
	})
	t.Run("a newer token replaces an agent", func(t *testing.T) {
		id, old := r.cluster(t, "moved")
		if err := old.Join(r.ctx, false); err != nil {
			t.Fatal(err)
		}
		next := r.anew(t, id, r.url)
		if err := next.Join(r.ctx, false); err != nil {
			t.Fatal(err)
		}
		if _, _, err := old.Session(r.ctx); reason(err) != tunnel.ReasonClusterUnknown {
			t.Errorf("the old agent got %v", err)
		}
		if got := reason(old.Join(r.ctx, true)); got != tunnel.ReasonClusterUnknown {
			t.Errorf("the old agent recovers: %q", got)
		}
	})
}

func TestOfManyJoinsAtOnceExactlyOneGetsACertificate(t *testing.T) {
	r := start(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.PerIP = -1 })
	_, p := r.cluster(t, "contested")
	const many = 200
	got := make([]string, many)
	var wait sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i := range many {
		wait.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			rival, err := r.NewPeer(p.Token)
			if err != nil {
				got[i] = err.Error()
				return
			}
			for {
				got[i] = reason(rival.Join(r.ctx, false))
				if got[i] != tunnel.ReasonOverloaded { // told to come back
					return
				}
			}
		})
	}
	wait.Wait()
	counts := map[string]int{}
	for _, g := range got {
		counts[g]++
	}
	if counts[""] != 1 || counts[tunnel.ReasonTokenUsed] != many-1 {
		t.Errorf("got %v", counts)
	}
}

func TestJoinRequestsThatWereTamperedWithAreRefused(t *testing.T) {
	clock := newClock()
	r := start(t, withClock(clock))
	_, p := r.cluster(t, "victim")
	_, thief := r.cluster(t, "thief")
	s, err := p.Open(r.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := tunnel.NewClient(s)
	request := func() tunnel.JoinRequest {
		req, err := p.Request(r.ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		p.Sign(&req, p.Token.Key())
		return req
	}
	cases := map[string]struct {
		change func(*tunnel.JoinRequest)
		want   string
	}{
		"another client key under the same proof": {func(q *tunnel.JoinRequest) {
			other, err := thief.Request(r.ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			q.ClientKey = other.ClientKey
		}, tunnel.ReasonProof},
		"a nonce of its own":       {func(q *tunnel.JoinRequest) { q.Nonce = make([]byte, 32); p.Sign(q, p.Token.Key()) }, tunnel.ReasonNonce},
		"no nonce":                 {func(q *tunnel.JoinRequest) { q.Nonce = nil; p.Sign(q, p.Token.Key()) }, tunnel.ReasonNonce},
		"a nonce that is too old":  {func(*tunnel.JoinRequest) { clock.add(tunnel.NonceTTL + time.Second) }, tunnel.ReasonNonce},
		"no proof":                 {func(q *tunnel.JoinRequest) { q.Proof = nil }, tunnel.ReasonProof},
		"a bound key not its own":  {func(q *tunnel.JoinRequest) { q.BoundKey = thief.Bound.Public().(ed25519.PublicKey) }, tunnel.ReasonProof},
		"a recovery before a join": {func(q *tunnel.JoinRequest) { p.Sign(q, nil) }, tunnel.ReasonClusterUnknown},
		"a client key of another kind": {func(q *tunnel.JoinRequest) {
			q.ClientKey = []byte("key")
			p.Sign(q, p.Token.Key())
		}, tunnel.ReasonBadRequest},
	}
	for name, tc := range cases {
		req := request()
		tc.change(&req)
		if got := reason(p.Post(r.ctx, c, req)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	req := request()
	if err := p.Post(r.ctx, c, req); err != nil {
		t.Fatal(err)
	}
	if got := reason(p.Post(r.ctx, c, req)); got != tunnel.ReasonNonce {
		t.Errorf("a request that is replayed: got %q", got)
	}
	if got := reason(c.Call(r.ctx, http.MethodPost, "/v1/hello", tunnel.Hello{}, nil)); got == "" {
		t.Error("the join endpoint answers hello")
	}
}

func TestAnAgentWhoseCertificateRanOutRecoversWithItsBoundKey(t *testing.T) {
	clock := newClock()
	r := start(t, withClock(clock))
	_, p := r.cluster(t, "dark")
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	clock.add(7 * 24 * time.Hour)
	if _, _, err := p.Session(r.ctx); err == nil {
		t.Fatal("a certificate of last week makes a session")
	}
	if err := p.Join(r.ctx, true); err != nil {
		t.Fatal(err)
	}
	r.open(t, p)
}

func TestARenewalIsForTheSessionsOwnIdentity(t *testing.T) {
	r := start(t)
	id, p, _, c := r.session(t, "renews")
	req, err := p.Request(r.ctx, nonceless(t, r, p))
	if err != nil {
		t.Fatal(err)
	}
	var answer tunnel.CertificateAnswer
	if err := c.Call(r.ctx, http.MethodPost, "/v1/renew", tunnel.RenewRequest{ClientKey: req.ClientKey}, &answer); err != nil {
		t.Fatal(err)
	}
	before := p.Cert.Leaf.SerialNumber
	if err := p.Keep(answer); err != nil {
		t.Fatal(err)
	}
	got, _, err := tunnel.PeerIdentity(p.Cert.Leaf, r.ID)
	if err != nil || got != id {
		t.Errorf("renewed as %+v, %v", got, err)
	}
	if p.Cert.Leaf.SerialNumber.Cmp(before) == 0 {
		t.Error("the same certificate came back")
	}
	recorded, _ := r.ByUID(id.UID)
	if recorded.Status.Agent.CertificateSerial != p.Cert.Leaf.SerialNumber.Text(16) {
		t.Error("the serial was not recorded")
	}
	if got := reason(c.Call(r.ctx, http.MethodPost, "/v1/renew", tunnel.RenewRequest{ClientKey: req.ClientKey}, nil)); got != tunnel.ReasonOverloaded {
		t.Errorf("a second renewal at once: got %q", got)
	}
	r.open(t, p)
}

func TestARenewalThatIsPlayedBackGivesNobodyAnotherIdentity(t *testing.T) {
	r := start(t, renewing)
	id, p, _, c := r.session(t, "renews")
	req, err := p.Request(r.ctx, nonceless(t, r, p))
	if err != nil {
		t.Fatal(err)
	}
	recorded := tunnel.RenewRequest{ClientKey: req.ClientKey}
	renew := func(c *tunnel.Client) (*gatewaytest.Peer, error) {
		var answer tunnel.CertificateAnswer
		if err := c.Call(r.ctx, http.MethodPost, "/v1/renew", recorded, &answer); err != nil {
			return nil, err
		}
		made := p.Clone()
		return made, made.Keep(answer)
	}

	t.Run("over its own session it makes the next certificate, with a number of its own", func(t *testing.T) {
		for want := int64(2); want <= 3; want++ {
			made, err := renew(c)
			if err != nil {
				t.Fatal(err)
			}
			if number, err := tunnel.PeerRenewal(made.Cert.Leaf); number != want || err != nil {
				t.Errorf("got number %d, %v, want %d", number, err, want)
			}
		}
	})
	t.Run("over another Cluster's session it makes one of that Cluster", func(t *testing.T) {
		other, _, _, theirs := r.session(t, "other")
		made, err := renew(theirs)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := tunnel.PeerIdentity(made.Cert.Leaf, r.ID); err != nil || got != other {
			t.Errorf("it is of %v, %v", got, err)
		}
	})
	t.Run("over a session older than a certificate that was used since, it is refused and both are", func(t *testing.T) {
		before := r.agentOf(t, id)
		r.Change(id.UID, func(s *v1alpha1.ClusterStatus) { s.Agent.UsedRenewal = 3 })
		if _, err := renew(c); reason(err) != tunnel.ReasonCloneDetected {
			t.Errorf("got %v", err)
		}
		after := r.agentOf(t, id)
		if after.Renewals != before.Renewals || after.CertificateSerial != before.CertificateSerial || after.CloneDetectedAt == nil {
			t.Errorf("recorded %+v", after)
		}
	})
}

// nonceless is a client of the join endpoint, where nonces are had.
func nonceless(t *testing.T, r *rig, p *gatewaytest.Peer) *tunnel.Client {
	t.Helper()
	s, err := p.Open(r.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return tunnel.NewClient(s)
}

func TestAHubWithoutAnyClusterAsksAgentsToComeBackSoon(t *testing.T) {
	r := start(t)
	id, agent := r.cluster(t, "edge")
	if err := agent.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	other, _ := r.cluster(t, "other")
	r.DeleteCluster(id.UID)
	if _, _, err := agent.Session(r.ctx); reason(err) != tunnel.ReasonClusterUnknown {
		t.Errorf("a hub that has others: got %v", err)
	}
	r.DeleteCluster(other.UID)
	for what, err := range map[string]error{
		"a session": func() error { _, _, err := agent.Session(r.ctx); return err }(), "a recovery": agent.Join(r.ctx, true),
	} {
		var status *tunnel.StatusError
		if !errors.As(err, &status) || status.Code != http.StatusServiceUnavailable || status.RetryAfter != gateway.RetryEmpty {
			t.Errorf("%s at a hub that is about to be restored: got %v, want 503 and to come back after %s", what, err, gateway.RetryEmpty)
		}
	}
}
