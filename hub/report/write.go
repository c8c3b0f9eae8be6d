// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

type v1Release = v1alpha1.Release

// object is what is written here.
type object interface {
	runtime.Object
	metav1.Object
}

// compareAndSwap changes the object of that name and UID in one write, made
// again from the fresh object when somebody else was faster. change works on a
// copy and returns false when there is nothing to write.
func compareAndSwap[T object](ctx context.Context, store rest.Updater, key types.NamespacedName, uid types.UID, change func(old, next T) (bool, error)) (T, error) {
	var none T
	ctx = genericapirequest.WithNamespace(ctx, key.Namespace)
	transform := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		typed, ok := old.(T)
		if !ok {
			return nil, fmt.Errorf("the store holds a %T under %s", old, key)
		}
		if typed.GetUID() != uid {
			return nil, ErrGone
		}
		next, ok := old.DeepCopyObject().(T)
		if !ok {
			return nil, fmt.Errorf("a copy of %T is of another type", old)
		}
		changed, err := change(typed, next)
		if err != nil {
			return nil, err
		}
		if !changed {
			return old, nil
		}
		return next, nil
	}
	out, _, err := store.Update(ctx, key.Name, rest.DefaultUpdatedObjectInfo(nil, transform),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return none, err
	}
	typed, ok := out.(T)
	if !ok {
		return none, fmt.Errorf("the store answered with a %T for %s", out, key)
	}
	return typed, nil
}

// isGone says that there is nothing left to write about.
func isGone(err error) bool {
	return errors.Is(err, ErrGone) || apierrors.IsNotFound(err)
}

// releaseChange is one change of a Release's status.
type releaseChange struct {
	// fold changes the copy; it may be called several times.
	fold func(next *v1Release) error
	// onlyConditions: counts and operations alone are not worth a write.
	onlyConditions bool
	// reported: what is written came from the agent.
	reported bool
	// certain: known to change something, so that it is not tried on the cached
	// object first.
	certain bool
}

// apply folds and says whether the result is worth a write.
func (c releaseChange) apply(old, next *v1Release, now time.Time) (bool, error) {
	if err := c.fold(next); err != nil {
		return false, err
	}
	if c.onlyConditions && sameConditions(old.Status.Conditions, next.Status.Conditions) ||
		sameStatus(&old.Status, &next.Status) {
		return false, nil
	}
	if c.reported {
		at := metav1.NewTime(now.Truncate(time.Second))
		next.Status.LastReportedAt = &at
	}
	return true, nil
}

// writeRelease makes one change of a Release's status, or none when it would
// change nothing. The cache knows of it when writeRelease returns.
func (r *Reporter) writeRelease(ctx context.Context, cached *v1Release, change releaseChange) error {
	if !change.certain {
		changed, err := change.apply(cached, cached.DeepCopy(), r.clock.Now())
		if err != nil {
			return err
		}
		if !changed {
			r.metrics.writes.WithLabelValues("release", "unchanged").Inc()
			return nil
		}
	}
	key := types.NamespacedName{Namespace: cached.Namespace, Name: cached.Name}
	started := r.clock.Now()
	var before v1alpha1.ReleaseStatus
	written := false
	out, err := compareAndSwap(ctx, r.options.ReleaseStatus, key, cached.UID, func(old, next *v1Release) (bool, error) {
		before = old.Status
		var err error
		written, err = change.apply(old, next, r.clock.Now())
		return written, err
	})
	switch {
	case isGone(err):
		r.metrics.writes.WithLabelValues("release", "gone").Inc()
		return ErrGone
	case err != nil:
		r.metrics.writes.WithLabelValues("release", "failed").Inc()
		return err
	case !written:
		r.metrics.writes.WithLabelValues("release", "unchanged").Inc()
		return nil
	}
	r.metrics.writes.WithLabelValues("release", "written").Inc()
	r.metrics.writeSeconds.Observe(r.clock.Since(started).Seconds())
	r.options.Memory.PutRelease(out)
	r.record(out, before.Conditions)
	return nil
}

// Release writes what the controller came to: at most one status write. It
// returns ErrGone when the Release was deleted meanwhile.
func (r *Reporter) Release(ctx context.Context, key types.NamespacedName, uid types.UID, outcome Outcome) error {
	cached, ok := r.options.Releases.Release(key)
	if !ok || cached.UID != uid {
		return ErrGone
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return r.writeRelease(ctx, cached, releaseChange{
		certain: outcome.Order != nil,
		fold: func(next *v1Release) error {
			return foldOutcome(next, outcome, r.newest(uid), r.clock.Now())
		},
	})
}
