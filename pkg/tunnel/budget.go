// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Budget bounds what the streams of many sessions hold unread. When it is used up,
// the session that holds most is ended, so that a session keeps its fair share,
// which is the limit divided by the sessions that hold anything, however hard
// others press.
type Budget struct {
	limit int64
	used  atomic.Int64

	mu      sync.Mutex
	holders map[*guard]struct{}

	// ending is held while sessions are chosen and ended, so that two that find the
	// budget used up do not end two where one is enough.
	ending sync.Mutex
}

// NewBudget allows limit bytes.
func NewBudget(limit int64) *Budget {
	return &Budget{limit: limit, holders: map[*guard]struct{}{}}
}

// Used bytes at the moment.
func (b *Budget) Used() int64 { return b.used.Load() }

// take counts n bytes more of a session.
func (b *Budget) take(g *guard, n uint32) {
	b.used.Add(int64(n))
	if g.unread.Add(int64(n)) == int64(n) {
		b.list(g)
	}
}

// give counts n bytes less of a session.
func (b *Budget) give(g *guard, n uint32) {
	if n == 0 {
		return
	}
	b.used.Add(-int64(n))
	if g.unread.Add(-int64(n)) == 0 {
		b.list(g)
	}
}

// list a session among those that hold anything, or strike it off. It goes by what is
// so now: between a count and the lock another may have counted.
func (b *Budget) list(g *guard) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.unread.Load() > 0 {
		b.holders[g] = struct{}{}
	} else {
		delete(b.holders, g)
	}
}

// relieve ends the sessions that hold most until the budget is kept. When that is
// the one that asks, it fails with ErrBudget.
func (b *Budget) relieve(by *guard) error {
	if b.used.Load() <= b.limit {
		return nil
	}
	b.ending.Lock()
	defer b.ending.Unlock()
	for b.used.Load() > b.limit {
		most := b.largest()
		if most == nil {
			return nil // it was given back meanwhile
		}
		broken := fmt.Errorf("%w: %d bytes of %d in all", ErrBudget, most.unread.Load(), b.used.Load())
		if most == by {
			return broken
		}
		most.expel(broken)
	}
	return nil
}

func (b *Budget) largest() *guard {
	b.mu.Lock()
	defer b.mu.Unlock()
	var most *guard
	for g := range b.holders {
		if most == nil || g.unread.Load() > most.unread.Load() {
			most = g
		}
	}
	return most
}
