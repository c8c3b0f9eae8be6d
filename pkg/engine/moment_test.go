// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestHA04WhatIsToldIsByTheHubsClockAndNeverInItsFuture(t *testing.T) {
	t.Parallel()
	hub := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, known := range map[string]time.Time{
		"a machine two hours ahead":  hub.Add(2 * time.Hour),
		"a machine two hours behind": hub.Add(-2 * time.Hour),
		"a machine in 1970":          time.Unix(0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now() // with a reading of the clock that does not jump
			c := clocktesting.NewFakePassiveClock(start)
			says := known
			m := newMoments(c, func() time.Time { return says.Add(c.Since(start)) })
			since := c.Now() // something happens before the hub was heard
			c.SetTime(start.Add(time.Minute))
			if got := m.told(since); !got.Equal(known) {
				t.Errorf("before the hub is heard: told %s, want %s as all that is known", got, known)
			}
			says = hub
			first := m.told(since)
			if !first.Equal(hub) {
				t.Errorf("when the hub was heard: told %s, want %s", first, hub)
			}
			// What does not move is told the same, or each report would be another one.
			for i := range 100 {
				c.SetTime(start.Add(time.Minute + time.Duration(i)*time.Second))
				says = hub.Add(time.Duration(i%3) * time.Millisecond)
				if got := m.told(since); !got.Equal(first) {
					t.Fatalf("told %s, and before that %s", got, first)
				}
				if got, now := m.told(c.Now()), says.Add(c.Since(start)); got.After(now) {
					t.Fatalf("told %s at %s", got, now)
				}
			}
			// What was read back from a record was told when it was written.
			record := hub.Add(-time.Hour)
			if got := m.told(record); !got.Equal(record) {
				t.Errorf("a time of a record is told as %s", got)
			}
			op := m.operation(&tunnel.Operation{StartedAt: since, FinishedAt: &since})
			if !op.StartedAt.Equal(first) || !op.FinishedAt.Equal(first) || op.Deadline != nil || m.operation(nil) != nil {
				t.Errorf("an operation is told as %+v", op)
			}
		})
	}
}

func TestHA04ReportsAreCountedUpWhenTheClockJumpsBack(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakePassiveClock(time.Now())
	m := newMoments(c, c.Now)
	last := int64(0)
	for range 10 {
		c.SetTime(c.Now().Add(-time.Hour))
		if next := m.next(); next <= last {
			t.Fatalf("%d after %d", next, last)
		} else {
			last = next
		}
	}
}

func TestOrdersAreHeldForAHubThatLostThem(t *testing.T) {
	t.Parallel()
	now := time.Now()
	rn, _ := unstarted(t, now)
	layer := tunnel.Layer{Digest: "sha256:" + string(make64('a')), Size: 10}
	for _, uid := range []string{"a", "b"} {
		order := tunnel.Order{
			Verb: tunnel.VerbApply, Hub: "hub", ClusterUID: "cluster", Sequence: now.UnixMilli(), Release: tunnel.ReleaseRef{UID: uid},
			Objects: &layer,
		}
		if err := rn.Accept(order, tunnel.Signed{KeyID: "key of " + uid}); err != nil {
			t.Fatal(err)
		}
	}
	got := rn.Held([]string{"b", "nobody", "a"})
	if len(got) != 2 || got[0].KeyID != "key of b" || got[1].KeyID != "key of a" {
		t.Errorf("held %+v", got)
	}
	if size, ok := rn.releases["a"].sizeOf(layer.Digest); !ok || size != 10 {
		t.Errorf("size %d, %v", size, ok)
	}
	if _, _, err := rn.Layer(t.Context(), "sha256:"+string(make64('b'))); !errors.Is(err, ErrNotStored) {
		t.Errorf("a layer of nobody: %v", err)
	}
}

func make64(c byte) []byte {
	out := make([]byte, 64)
	for i := range out {
		out[i] = c
	}
	return out
}
