// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
)

// lifecycle runs components, each on top of those that were started before it,
// and ends them in the opposite order, each when the one above it has ended. One
// that ends by itself ends all.
type lifecycle struct {
	// base carries values, the logger among them, and no end: ends come from stop
	// alone.
	base context.Context
	log  logr.Logger

	parts []*part

	mu sync.Mutex
	// failed is what ended the first component that ended by itself; guarded by mu.
	failed error
	// over is closed when a component has ended by itself.
	over chan struct{}
	once sync.Once
}

// part is one running component.
type part struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // set before ended is closed
}

// errEnded: a component ended although nobody had asked it to.
var errEnded = errors.New("ended by itself")

func newLifecycle(ctx context.Context) *lifecycle {
	return &lifecycle{base: context.WithoutCancel(ctx), log: logr.FromContextOrDiscard(ctx), over: make(chan struct{})}
}

// start runs a component until stop.
func (l *lifecycle) start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(l.base)
	p := &part{name: name, cancel: cancel, ended: make(chan struct{})}
	l.parts = append(l.parts, p)
	go func() {
		defer close(p.ended)
		p.err = run(ctx)
		if ctx.Err() == nil {
			l.fail(name, p.err)
		}
	}()
}

// called gives a component that has no name of its own in the log one.
func called(name string, run func(context.Context) error) (string, func(context.Context) error) {
	return name, func(ctx context.Context) error {
		return run(logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithName(name)))
	}
}

func (l *lifecycle) fail(name string, err error) {
	if err == nil {
		err = errEnded
	}
	l.once.Do(func() {
		l.mu.Lock()
		l.failed = fmt.Errorf("%s: %w", name, err)
		l.mu.Unlock()
		close(l.over)
	})
}

// wait returns when something is so, when a component has failed, or when ctx
// ends; the latter two are errors.
func (l *lifecycle) wait(ctx context.Context, what string, is <-chan struct{}) error {
	select {
	case <-is:
		return nil
	case <-l.over:
		return l.failure()
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", what, ctx.Err())
	}
}

func (l *lifecycle) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// stop ends all, the last started first.
func (l *lifecycle) stop() error {
	var errs error
	for i := len(l.parts) - 1; i >= 0; i-- {
		p := l.parts[i]
		p.cancel()
		<-p.ended
		if p.err != nil && !errors.Is(p.err, context.Canceled) {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", p.name, p.err))
		}
		l.log.V(1).Info("Component has ended", "component", p.name)
	}
	return errors.Join(l.failure(), errs)
}
