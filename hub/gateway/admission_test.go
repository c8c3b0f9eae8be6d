// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// storm opens n connections at once, each with one request, and tells when those
// that were served were.
func storm(t *testing.T, pipes *gatewaytest.Pipes, n int, request string) (served []time.Duration, turnedAway int) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			c, err := pipes.Dial(context.Background(), "", "") //nolint:usetesting // ends with its connection
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := io.WriteString(c, request); err != nil {
				mu.Lock()
				defer mu.Unlock()
				turnedAway++
				return
			}
			answer, err := io.ReadAll(c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(answer) == 0 {
				turnedAway++
				return
			}
			served = append(served, time.Since(began))
		})
	}
	wait.Wait()
	return served, turnedAway
}

func TestAStormOfConnectionsIsLetInAtTheStatedPaceAndTheRestIsTurnedAwayBeforeTLS(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, _ func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		const many = 4000
		pipes := r.pipes
		served, turnedAway := storm(t, pipes, many, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if len(served)+turnedAway != many {
			t.Fatalf("%d served and %d turned away of %d", len(served), turnedAway, many)
		}
		// At once the burst, the rest at its pace, and no more than the queue holds.
		most := gateway.SessionBurst + gateway.MaxWaiting + gateway.MaxHandshakes
		if len(served) > most || len(served) < gateway.MaxWaiting {
			t.Errorf("%d were served, want between %d and %d", len(served), gateway.MaxWaiting, most)
		}
		for second := range 6 {
			count := 0
			for _, at := range served {
				if at >= time.Duration(second)*time.Second && at < time.Duration(second+1)*time.Second {
					count++
				}
			}
			limit := gateway.SessionRate + 1
			if second == 0 {
				limit += gateway.SessionBurst
			}
			if count > limit {
				t.Errorf("%d were served in second %d, want %d at most", count, second, limit)
			}
		}
		for _, at := range served {
			if at > gateway.MaxWait {
				t.Fatalf("one waited for %s", at)
			}
		}
		synctest.Wait()
		if served, _ := storm(t, pipes, 1, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); len(served) != 1 {
			t.Error("one that comes after the storm is not served")
		}
	})
}

func TestWhoWaitsBehindStalledHandshakesIsTurnedAwayInTime(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, _ func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		// Each holds a place and never finishes its header.
		for range gateway.MaxHandshakes {
			c, err := r.pipes.Dial(r.ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nX-Slow: "); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		began := time.Now()
		served, turnedAway := storm(t, r.pipes, 100, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		// Those of the header's limit make room at about the same time.
		if len(served)+turnedAway != 100 || time.Since(began) > gateway.MaxWait+time.Second {
			t.Errorf("%d served, %d turned away after %s", len(served), turnedAway, time.Since(began))
		}
	})
}
