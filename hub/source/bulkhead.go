// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// bulkhead bounds how much is asked for one tenant at once, whatever hosts that is asked
// of: who names a hundred hosts that never answer waits for them alone.
type bulkhead struct {
	mu  sync.Mutex
	all map[string]*berth // by namespace; guarded by mu
}

type berth struct {
	slots [2]*semaphore.Weighted // by visit
	users int                    // guarded by bulkhead.mu
}

func newBulkhead() *bulkhead { return &bulkhead{all: map[string]*berth{}} }

// enter waits for a place; leave must follow.
func (b *bulkhead) enter(ctx context.Context, tenant string, what visit) (leave func(), err error) {
	b.mu.Lock()
	at := b.all[tenant]
	if at == nil {
		at = &berth{slots: [2]*semaphore.Weighted{semaphore.NewWeighted(maxLooksPerTenant), semaphore.NewWeighted(maxFetchesPerTenant)}}
		b.all[tenant] = at
	}
	at.users++
	b.mu.Unlock()
	if err := at.slots[what].Acquire(ctx, 1); err != nil {
		b.release(tenant, at)
		return nil, err
	}
	return func() {
		at.slots[what].Release(1)
		b.release(tenant, at)
	}, nil
}

func (b *bulkhead) release(tenant string, at *berth) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(b.all, tenant)
	}
}
