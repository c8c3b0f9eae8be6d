// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// limits bound how often calls fail: all together, and those of each caller about one
// source. What is signed right is not counted: all callers may have one address, that
// of a proxy before the hub.
type limits struct {
	clock clock.PassiveClock
	all   *rate.Limiter

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

func newLimits(c clock.PassiveClock) *limits {
	return &limits{clock: c, all: rate.NewLimiter(allRate, allBurst), callers: map[string]*rate.Limiter{}}
}

// allow takes one failure of a caller.
func (l *limits) allow(caller string) bool {
	now := l.clock.Now()
	if !l.all.AllowN(now, 1) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.callers[caller]
	if one == nil {
		if len(l.callers) >= maxCallers {
			l.forgetLocked()
		}
		one = rate.NewLimiter(oneRate, oneBurst)
		l.callers[caller] = one
	}
	return one.AllowN(now, 1)
}

// forgetLocked lets go of those who did not call of late, or of all if there are none
// such: the bound of all holds in any case.
func (l *limits) forgetLocked() {
	now := l.clock.Now()
	for caller, one := range l.callers {
		if one.TokensAt(now) >= oneBurst {
			delete(l.callers, caller)
		}
	}
	if len(l.callers) >= maxCallers {
		clear(l.callers)
	}
}
