// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
)

// localClock is the clock of a machine that is wrong, and can be set.
type localClock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *localClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *localClock) set(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = ahead
}

func TestHA04AWrongOrJumpingClockAtTheEdgeNeitherFlapsNorDelaysNorNeedsACertificate(t *testing.T) {
	const ahead = 2 * time.Hour
	for name, c := range map[string]struct{ from, to time.Duration }{
		"two hours ahead":               {ahead, ahead},
		"two hours behind":              {-ahead, -ahead},
		"jumps back an hour":            {0, -time.Hour},
		"jumps ahead a day":             {0, 25 * time.Hour},
		"in 1970, and set by an NTP":    {-56 * 365 * 24 * time.Hour, 0},
		"right, and falls back to 1970": {0, -56 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, func(t *testing.T, r *rig) {
				clock := &localClock{ahead: c.from}
				r.options.Now, r.options.Built = clock.now, time.Now()
				a := &agent{registry: newRegistry(&r.options)}
				r.run(t)
				pass(5 * time.Second)
				joined := r.store.get()
				since, ok := r.gateway.Sessions().Info(r.id.UID)
				if !ok {
					t.Fatal("no session")
				}
				pass(5 * time.Minute)
				clock.set(c.to)
				pass(5 * time.Minute)
				if now, ok := r.gateway.Sessions().Info(r.id.UID); !ok || !now.Since.Equal(since.Since) {
					t.Error("the session did not last for ten minutes")
				}
				if d := time.Until(r.link.HubNow()); d.Abs() > time.Second {
					t.Errorf("takes the hub's clock for %s ahead of what it is", d)
				}
				// Orders go on as ever.
				r.order(t, "a", 1)
				pass(time.Second)
				if r.engine.Have()["a"] != 1 {
					t.Error("an order did not arrive")
				}
				// A hub that is away and comes back is found in the same time as by others.
				clock.set(c.from) // and it jumps once more
				g := r.restartAfter(t, time.Minute)
				fleet := link.DefaultBackoff()
				pass(fleet.Max + time.Minute)
				if !g.Sessions().Connected(r.id.UID) {
					t.Error("did not come back in time")
				}
				if !bytes.Equal(r.store.get().Certificate, joined.Certificate) {
					t.Error("needed another certificate, as if this one had run out")
				}
				skew, _ := a.value(t, "convoy_link_clock_skew_seconds")
				if want := c.from.Seconds(); skew < want-1 || skew > want+1 {
					t.Errorf("shows a skew of %v s, want %v", skew, want)
				}
			})
		})
	}
}

func TestACertificateThatRanOutWhileTheHubWasAwayIsHadAnewWithTheBoundKey(t *testing.T) {
	for name, now := range map[string]func() time.Time{
		"":                      time.Now,
		" with a clock at 1970": func() time.Time { return time.Unix(0, 0) },
	} {
		t.Run("the agent runs on"+name, func(t *testing.T) {
			fake(t, func(t *testing.T, r *rig) {
				r.options.Now, r.options.Built = now, time.Now()
				r.run(t)
				pass(time.Second)
				before := r.store.get()
				g := r.restartAfter(t, 3*24*time.Hour)
				pass(link.DefaultBackoff().Max + time.Minute)
				if !g.Sessions().Connected(r.id.UID) {
					t.Fatal("no session")
				}
				if got := r.store.get(); bytes.Equal(got.Certificate, before.Certificate) || !bytes.Equal(got.BoundKey, before.BoundKey) {
					t.Error("not recovered with the bound key")
				}
			})
		})
		t.Run("the agent starts anew"+name, func(t *testing.T) {
			fake(t, func(t *testing.T, r *rig) {
				r.options.Now, r.options.Built = now, time.Now()
				stop := r.run(t)
				pass(time.Second)
				before := r.store.get()
				stop()
				g := r.restartAfter(t, 3*24*time.Hour)
				r.run(t)
				pass(link.DefaultBackoff().Max)
				if !g.Sessions().Connected(r.id.UID) {
					t.Fatal("no session")
				}
				if got := r.store.get(); bytes.Equal(got.Certificate, before.Certificate) || !bytes.Equal(got.BoundKey, before.BoundKey) {
					t.Error("not recovered with the bound key")
				}
			})
		})
	}
}

func TestAClockThatDoesNotFitTheHubsCertificateIsNamedAsThat(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		r.options.Now = func() time.Time { return time.Now().Add(400 * 24 * time.Hour) }
		a := &agent{registry: newRegistry(&r.options)}
		r.run(t)
		pass(10 * time.Minute)
		if n, _ := a.value(t, "convoy_link_failures_total", "clock"); n < 3 {
			t.Errorf("named %v times", n)
		}
		if n, _ := a.value(t, "convoy_link_failures_total", "untrusted"); n != 0 {
			t.Error("taken for a hub that is not ours")
		}
	})
}

func TestNothingIsReachedForHoursAndTheAgentEndsOnceInHalfAnHourGiveOrTakeHalf(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		stop := r.run(t)
		pass(time.Second)
		stop()
		r.options.RestartAfter = link.RestartAfter
		r.options.GatewayURL = "ws://192.0.2.1"
		r.options.Dial = refuseAll
		l, err := link.New(r.options)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := l.Run(r.ctx); !errors.Is(err, link.ErrUnreached) {
			t.Errorf("ended with %v", err)
		}
		if d := time.Since(began); d < link.RestartAfter/2 || d > link.RestartAfter*3/2+link.DefaultBackoff().Max {
			t.Errorf("ended after %s", d)
		}
	})
}

var errNoRoute = errors.New("no route to host")

func refuseAll(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute }

func TestAHubWhoseClockRanAheadForAWhileIsFoundAgainWhenItIsPutRight(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		r.options.Built = time.Now()
		var ahead atomic.Int64
		r.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		r.run(t)
		pass(time.Second)
		ahead.Store(int64(1000 * 24 * time.Hour))
		g := r.restartAfter(t, time.Minute)
		pass(link.DefaultBackoff().Max + time.Minute)
		if !g.Sessions().Connected(r.id.UID) {
			t.Error("a hub whose clock is ahead is not served")
		}
		ahead.Store(0)
		g = r.restartAfter(t, time.Minute)
		pass(link.DefaultBackoff().RefusedMax + time.Minute)
		if !g.Sessions().Connected(r.id.UID) {
			t.Error("a hub whose clock was put right is not found any more")
		}
	})
}
