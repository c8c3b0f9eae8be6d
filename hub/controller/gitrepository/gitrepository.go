// SPDX-License-Identifier: Apache-2.0

// Package gitrepository reconciles GitRepositories: the first step of the flow
// source -> render -> store -> deliver -> apply -> observe -> report. Each is
// asked at its interval where its ref is; the answer is what Releases are
// rendered of without a call of their own. Nothing is fetched here.
package gitrepository

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/report"
)

// Limits of asking.
const (
	// DefaultInterval is used where none is given.
	DefaultInterval = time.Minute
	// firstRetry is the pause after the first failure; it doubles up to the interval.
	firstRetry = 2 * time.Second
	// checkTimeout ends one question.
	checkTimeout = 30 * time.Second
)

// Cache is the hub's cache.
type Cache interface {
	GitRepository(key types.NamespacedName) (*v1alpha1.GitRepository, bool)
}

// Checker asks a repository where its ref is.
type Checker interface {
	// Check returns the revision for people, as in main@sha1:<commit>.
	Check(ctx context.Context, repository *v1alpha1.GitRepository) (string, error)
}

// Reporter writes the status.
type Reporter interface {
	Source(ctx context.Context, key types.NamespacedName, uid types.UID, outcome report.SourceOutcome) error
}

// Options of a Reconciler. All but Clock are required.
type Options struct {
	Cache    Cache
	Checker  Checker
	Reporter Reporter
	Clock    clock.PassiveClock
}

// Reconciler of GitRepositories.
type Reconciler struct {
	Options
	controller.Feed

	mu sync.Mutex
	// notes on what was asked last; guarded by mu.
	notes map[types.NamespacedName]note
}

// note is what is remembered of one repository.
type note struct {
	uid        types.UID
	generation int64
	secrets    int
	due        time.Time
	failures   int
}

// New makes a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{Options: options, notes: map[types.NamespacedName]note{}}
}

// Interval of a repository.
func Interval(repository *v1alpha1.GitRepository) time.Duration {
	if repository.Spec.Interval == nil || repository.Spec.Interval.Duration <= 0 {
		return DefaultInterval
	}
	return repository.Spec.Interval.Duration
}

// Changed is told of each change of a GitRepository in the cache.
func (r *Reconciler) Changed(old, next *v1alpha1.GitRepository) {
	if next == nil {
		return
	}
	if old == nil || old.Generation != next.Generation || len(old.Status.CheckedSecrets) != len(next.Status.CheckedSecrets) {
		r.Add(types.NamespacedName{Namespace: next.Namespace, Name: next.Name})
	}
}

// Reconcile asks one repository, if it is time or if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	repository, ok := r.Cache.GitRepository(key)
	r.mu.Lock()
	known := r.notes[key]
	if !ok || repository.DeletionTimestamp != nil {
		delete(r.notes, key)
		r.mu.Unlock()
		return reconcile.Result{}, nil
	}
	r.mu.Unlock()
	now := r.Clock.Now()
	same := known.uid == repository.UID && known.generation == repository.Generation && known.secrets == len(repository.Status.CheckedSecrets)
	if same && now.Before(known.due) {
		return reconcile.Result{RequeueAfter: known.due.Sub(now)}, nil
	}
	if !same {
		known = note{uid: repository.UID, generation: repository.Generation, secrets: len(repository.Status.CheckedSecrets)}
	}

	asked, cancel := context.WithTimeout(ctx, checkTimeout)
	revision, err := r.Checker.Check(asked, repository)
	cancel()
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	outcome := report.SourceOutcome{
		Generation: repository.Generation, Revision: revision,
		Ready: report.Finding{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "the ref was found"},
	}
	next := jitter(Interval(repository))
	if err != nil {
		outcome.Revision = ""
		outcome.Ready = report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: err.Error()}
		var named controller.Reasoned
		if errors.As(err, &named) {
			outcome.Ready.Reason = named.Reason()
		}
		next = min(firstRetry<<min(known.failures, 16), next)
		known.failures++
		logr.FromContextOrDiscard(ctx).V(1).Info("A source cannot be used", "source", key.String(), "reason", outcome.Ready.Reason, "cause", err.Error())
	} else {
		known.failures = 0
	}
	if err := r.Reporter.Source(ctx, key, repository.UID, outcome); err != nil && !errors.Is(err, report.ErrGone) {
		return reconcile.Result{}, err
	}
	known.due = r.Clock.Now().Add(next)
	r.mu.Lock()
	r.notes[key] = known
	r.mu.Unlock()
	return reconcile.Result{RequeueAfter: next}, nil
}

// jitter spreads a pause by 5 % either way.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.1*float64(d))
}
