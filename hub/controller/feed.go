// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Limits of the queues.
const (
	// firstRetry and lastRetry bound the pause after an error.
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// Queue takes the keys of what is to be reconciled. A key that is in it already
// is not taken twice.
type Queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// Feed brings keys to one controller. What comes before the controller runs is
// dropped: it starts with all there is.
type Feed struct {
	queue atomic.Pointer[Queue]
}

// Add enqueues a key now.
func (f *Feed) Add(key types.NamespacedName) {
	if queue := f.queue.Load(); queue != nil {
		(*queue).Add(key)
	}
}

// AddAfter enqueues a key later.
func (f *Feed) AddAfter(key types.NamespacedName, after time.Duration) {
	if queue := f.queue.Load(); queue != nil {
		(*queue).AddAfter(key, after)
	}
}

// Options of Run.
type Options struct {
	// Name of the controller in logs.
	Name string
	// Workers reconcile at once.
	Workers int
	// Resync is how often all keys are enqueued again; 0: never.
	Resync time.Duration
	// Keys lists all there are.
	Keys func() []types.NamespacedName
	// Clock of the resync; default: the real one.
	Clock clock.WithTicker
}

// Run reconciles until ctx ends, and returns when all workers have ended.
func Run(ctx context.Context, feed *Feed, reconciler reconcile.TypedReconciler[types.NamespacedName], options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	logger := logr.FromContextOrDiscard(ctx).WithName(options.Name)
	controller, err := ctrl.NewTypedUnmanaged(options.Name, ctrl.TypedOptions[types.NamespacedName]{
		Reconciler:              reconciler,
		MaxConcurrentReconciles: options.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		UsePriorityQueue:        ptr.To(false),
		SkipNameValidation:      ptr.To(true), // several hubs may run in one test process
		Logger:                  logger,
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			if key == nil {
				return logger.V(1) // of the controller itself
			}
			return logger
		},
	})
	if err != nil {
		return fmt.Errorf("make the controller %s: %w", options.Name, err)
	}
	all := func() {
		for _, key := range options.Keys() {
			feed.Add(key)
		}
	}
	err = controller.Watch(source.TypedFunc[types.NamespacedName](func(_ context.Context, queue Queue) error {
		feed.queue.Store(&queue)
		all()
		return nil
	}))
	if err != nil {
		return fmt.Errorf("feed the controller %s: %w", options.Name, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return controller.Start(ctx) })
	if options.Resync > 0 {
		group.Go(func() error {
			ticker := options.Clock.NewTicker(options.Resync)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-ticker.C():
					all()
				}
			}
		})
	}
	return group.Wait()
}
