// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
)

// flights runs the same work once for all who want it at the same time. Work goes
// on when those who wait for it give up: somebody else may want it next.
type flights[T any] struct {
	mu      sync.Mutex
	current map[string]*work[T]
}

type work[T any] struct {
	done  chan struct{}
	value T
	err   error
}

type flight[T any] struct {
	*work[T]
	first bool // this one started it
}

// start joins the work of that key or starts it. It ends with the Coordinator.
func (f *flights[T]) start(c *Coordinator, key string, do func(context.Context) (T, error)) flight[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.current[key]; w != nil {
		return flight[T]{work: w}
	}
	w := &work[T]{done: make(chan struct{})}
	if !c.begin() {
		w.err = ErrStopped
		close(w.done)
		return flight[T]{work: w, first: true}
	}
	if f.current == nil {
		f.current = map[string]*work[T]{}
	}
	f.current[key] = w
	go func() {
		defer c.group.Done()
		w.value, w.err = do(c.ctx)
		f.mu.Lock()
		delete(f.current, key)
		f.mu.Unlock()
		close(w.done)
	}()
	return flight[T]{work: w, first: true}
}

func (f flight[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
