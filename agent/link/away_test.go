// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestAGoAwayEndsTheSessionInTimeAndTheAgentComesBack(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	slow := link.DefaultBackoff() // a lost session would be missed for longer
	slow.Start, slow.Lost, slow.Base = time.Millisecond, time.Hour, time.Hour
	a.options.Backoff = &slow
	a.run(t)
	h.wait(t, "a session", func() bool { return len(h.streams) == 1 })
	began := time.Now()
	h.say(tunnel.OrderEvent{GoAway: &tunnel.GoAway{WithinSeconds: 1, Reason: "rollout"}})
	h.say(tunnel.OrderEvent{GoAway: &tunnel.GoAway{WithinSeconds: 3600}}) // only the first counts
	h.wait(t, "another session", func() bool { return len(h.hellos) == 2 && len(h.streams) == 1 })
	t.Logf("back after %s", time.Since(began))
	if n, _ := a.value(t, "convoy_link_failures_total", "lost"); n != 0 {
		t.Error("counted as a loss")
	}
}

func TestAnAgentWhoseHubEndsBeforeTheAgentDidComesBackAsSpreadOutAsAsked(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	slow := link.DefaultBackoff()
	slow.Start, slow.Lost, slow.Base = time.Millisecond, time.Hour, time.Hour
	a.options.Backoff = &slow
	a.run(t)
	h.wait(t, "a session", func() bool { return len(h.streams) == 1 })
	h.say(tunnel.OrderEvent{GoAway: &tunnel.GoAway{WithinSeconds: 5}})
	h.say(tunnel.OrderEvent{Order: ptr(h.sign(t, "after", 1))})
	a.engine.wait(t, "word of it", func() bool { return a.engine.have["after"] == 1 })
	h.cut()
	h.wait(t, "another session", func() bool { return len(h.hellos) == 2 && len(h.streams) == 1 })
}

func TestARefusalIsNamedInAMetricUntilTheHubTakesTheAgentBack(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	a.run(t)
	h.wait(t, "a session", func() bool { return len(h.streams) == 1 })
	h.change(func() { h.refuse = &tunnel.Problem{Reason: "Revoked", Message: "by an administrator"} })
	h.cut()
	h.wait(t, "three refusals", func() bool { return len(h.hellos) >= 4 })
	eventually(t, "the reason in the metric", func() bool { n, _ := a.value(t, "convoy_link_refused", "Revoked"); return n == 1 })
	h.change(func() {
		h.refuse = &tunnel.Problem{Reason: "something that is no reason", Message: "by an administrator"}
	})
	eventually(t, "another reason", func() bool { n, _ := a.value(t, "convoy_link_refused", "Other"); return n == 1 })
	if _, ok := a.value(t, "convoy_link_refused", "Revoked"); ok {
		t.Error("the reason before is still shown")
	}
	h.change(func() { h.refuse = nil })
	h.wait(t, "a session", func() bool { return len(h.streams) == 1 })
	eventually(t, "no reason in the metric", func() bool { _, ok := a.value(t, "convoy_link_refused", "Other"); return !ok })
}

// eventually waits until ok holds, of which nobody tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not come", what)
		}
	}
}

func TestAnAgentThatReachesNothingForTooLongEndsSoThatItIsStartedAnew(t *testing.T) {
	h := newBareHub(t)
	a := newAgent(t, h)
	a.options.RestartAfter = 300 * time.Millisecond
	var mu sync.Mutex
	dark := errors.New("no route")
	a.options.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if dark != nil {
			return nil, dark
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	l, err := link.New(a.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Run(verbose(t)); !errors.Is(err, link.ErrUnreached) || !errors.Is(err, dark) {
		t.Errorf("ended with %v", err)
	}
	t.Run("a hub that answers and refuses is reached", func(t *testing.T) {
		mu.Lock()
		dark = nil
		mu.Unlock()
		h.refuse = &tunnel.Problem{Reason: "Revoked"}
		a.options.Registerer = nil
		a.run(t)
		h.wait(t, "refusals for longer than that", func() bool { return len(h.hellos) >= 5 })
		select {
		case err := <-a.ended:
			a.ended <- nil
			t.Errorf("ended with %v", err)
		default:
		}
	})
}

func TestATokenOfAnotherClusterIsToldOfAndTakesNobodyAwayFromItsHub(t *testing.T) {
	r := setUp(t)
	r.order(t, "a", 1)
	given := r.tokens()
	a := &agent{registry: newRegistry(&r.options)}
	r.run(t)
	r.engine.wait(t, "an order", func() bool { return r.engine.have["a"] == 1 })
	first := r.id
	other, theirs, err := r.AddCluster("fleet", "edge-2", r.url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	given.put(theirs)
	eventually(t, "word of the token", func() bool { n, _ := a.value(t, "convoy_link_foreign_token"); return n == 1 })
	t.Run("nor at the next dial", func(t *testing.T) {
		sessions, _ := a.value(t, "convoy_link_sessions_total")
		again(t, r)
		eventually(t, "another session", func() bool { n, _ := a.value(t, "convoy_link_sessions_total"); return n > sessions })
		if got := r.store.get(); got.ClusterUID != first.UID || got.Next != nil {
			t.Errorf("is on its way to %s", got.ClusterUID)
		}
	})
	t.Run("until its Cluster is deleted", func(t *testing.T) {
		r.DeleteCluster(first.UID)
		again(t, r)
		eventually(t, "the join", func() bool { got := r.store.get(); return got.ClusterUID == other.UID && got.Next == nil })
		eventually(t, "no word of a token", func() bool { n, _ := a.value(t, "convoy_link_foreign_token"); return n == 0 })
	})
}

// again starts the hub of a rig anew, where it was.
func again(t *testing.T, r *rig) {
	t.Helper()
	if err := r.stopHub(); err != nil {
		t.Fatal(err)
	}
	o := r.Options()
	o.Addr = strings.TrimPrefix(r.url, "wss://")
	g, _, stop, err := gatewaytest.Start(r.ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r.gateway, r.stopHub = g, stop
}

func TestANewTokenOfTheSameClusterIsJoinedWithAtOnce(t *testing.T) {
	r := setUp(t)
	given := r.tokens()
	r.run(t)
	r.engine.wait(t, "a head", func() bool { return len(r.engine.heads) > 0 })
	before := r.store.get()
	next, err := r.NewToken(r.id, r.url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	given.put(next)
	eventually(t, "another identity", func() bool { return string(r.store.get().BoundKey) != string(before.BoundKey) })
	r.order(t, "a", 1)
	r.engine.wait(t, "an order", func() bool { return r.engine.have["a"] == 1 })
}
