// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

type v1Release = v1alpha1.Release

// copied is what can be written here.
type copied[T any] interface {
	metav1.Object
	DeepCopy() T
}

// compareAndSwap changes the status of the object of that name and UID in one
// write, made again from the fresh object when somebody else was faster. change
// works on a copy; it may be called several times.
func compareAndSwap[T copied[T]](ctx context.Context, store StatusStore[T], key types.NamespacedName, uid types.UID, change func(old, next T) error) (T, error) {
	return store.UpdateStatus(ctx, key, "", func(next T) error {
		if next.GetUID() != uid {
			return ErrGone
		}
		return change(next.DeepCopy(), next)
	})
}

// isGone says that there is nothing left to write about.
func isGone(err error) bool {
	return errors.Is(err, ErrGone) || apierrors.IsNotFound(err)
}

// releaseChange is one change of a Release's status.
type releaseChange struct {
	// fold changes the copy; it may be called several times.
	fold func(next *v1Release) error
	// onlyConditions: counts and operations alone are not worth a write; with troubles it
	// is one that other objects are in trouble.
	onlyConditions, troubles bool
	// reported: what is written came from the agent, also; besides: it is not why something
	// is written.
	reported, besides bool
	// certain: known to change something, so that it is not tried on the cached
	// object first.
	certain bool
}

// apply folds and says whether the result is worth a write. missing are the health rules
// that the Release is to be judged by and is not.
func (c releaseChange) apply(old, next *v1Release, missing []string, now time.Time) (bool, error) {
	if err := c.fold(next); err != nil {
		return false, err
	}
	judge(next, old.Status.Conditions, missing, now)
	if !c.worth(&old.Status, &next.Status) {
		return false, nil
	}
	if c.reported {
		at := metav1.NewTime(now.Truncate(time.Second))
		next.Status.LastReportedAt = &at
	}
	return true, nil
}

func (c releaseChange) worth(old, next *v1alpha1.ReleaseStatus) bool {
	switch {
	case c.onlyConditions:
		return !sameConditions(old.Conditions, next.Conditions) || c.troubles && !sameTroubles(old.Exceptions, next.Exceptions)
	case c.besides:
		return !sameStatus(old, withoutFacts(next, old))
	}
	return !sameStatus(old, next)
}

// writeRelease makes one change of a Release's status, or none when it would
// change nothing. The cache knows of it when writeRelease returns.
func (r *Reporter) writeRelease(ctx context.Context, cached *v1Release, change releaseChange) error {
	if !change.certain {
		changed, err := change.apply(cached, cached.DeepCopy(), r.missingRules(cached), r.clock.Now())
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
	out, err := compareAndSwap(ctx, r.options.ReleaseStore, key, cached.UID, func(old, next *v1Release) error {
		before = old.Status
		var err error
		if written, err = change.apply(old, next, r.missingRules(next), r.clock.Now()); err == nil && !written {
			next.Status = old.Status
		}
		return err
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
	r.askWhenJudged(&before, out)
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
	last, newest := r.options.Orders.LastOrder(uid), r.heard(cached)
	return r.writeRelease(ctx, cached, releaseChange{
		certain:  outcome.Order != nil,
		reported: newest != nil, besides: newest != nil,
		fold: func(next *v1Release) error {
			return foldOutcome(next, outcome, newest, last, r.clock.Now())
		},
	})
}

// heard is the report held in memory of a Release whose cluster is heard of. What was held
// when it went silent is what the sweep has made Unknown.
func (r *Reporter) heard(release *v1Release) *tunnel.Report {
	cluster, ok := r.options.Clusters.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name})
	if !ok || !cluster.Status.Reachable {
		return nil
	}
	return r.newest(release.UID)
}
