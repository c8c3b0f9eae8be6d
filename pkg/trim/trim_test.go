// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

func TestMemoryIsGivenBackWhenAProcessIsCalmAndHasEnoughOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		live, allocated, spare uint64
		work, trimmed          uint64
		want                   bool
	}{
		"calm after a busy time":               {400 * mib, 10 * mib, 300 * mib, 0, 0, true},
		"at work":                              {400 * mib, 100 * mib, 300 * mib, 0, 0, false},
		"calm, and little to give back":        {400 * mib, 10 * mib, 40 * mib, 0, 0, false},
		"a small hub, and little to give back": {20 * mib, mib, 10 * mib, 0, 0, false},
		"a small hub that was busy":            {20 * mib, mib, 20 * mib, 0, 0, true},
		"an agent after a busy time":           {3 * mib, mib, mib, 32 * mib, 969 * mib, true},
		"an agent at work":                     {3 * mib, 2 * mib, 4 * mib, 32 * mib, 0, false},
		"an agent that did little":             {3 * mib, 0, 4 * mib, 32 * mib, 969 * mib, false},
		"a runtime that does not say anything": {0, 0, 0, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := New(Options{Work: c.work}).due(Usage{Allocated: 1000 * mib}, Usage{Live: c.live, Allocated: 1000*mib + c.allocated, Spare: c.spare}, c.trimmed); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestACalmHubIsTrimmedAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Second)
		defer cancel()
		trims, idle := 0, 0
		trimmer := New(Options{
			Clock: clock.RealClock{}, Registerer: prometheus.NewRegistry(),
			Read: func() Usage { return Usage{Live: 100 * mib, Spare: 100 * mib} },
			Free: func() { trims++ },
			Idle: func() { idle++ },
		})
		if err := trimmer.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if trims < 4 || trims > 5 || idle != trims {
			t.Errorf("%d trims in 5 minutes, %d times told before", trims, idle)
		}
	})
}

func TestWhatTheRuntimeSaysIsRead(t *testing.T) {
	runtime.GC()
	before := read()
	garbage := make([][]byte, 0, 32)
	for range cap(garbage) {
		garbage = append(garbage, make([]byte, mib))
	}
	now := read()
	runtime.KeepAlive(garbage)
	if now.Live == 0 || now.Allocated-before.Allocated < 32*mib {
		t.Errorf("from %+v to %+v", before, now)
	}
}
