// SPDX-License-Identifier: Apache-2.0

// Package source reconciles sources: the first step of the flow source -> render ->
// store -> deliver -> apply -> observe -> report. Each is asked at its interval
// whether it can be used and what its ref leads to; the answer is what Releases are
// rendered of without a call of their own. Nothing is fetched here.
package source

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
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
	// firstRetry is the pause after the first failure; it doubles up to the interval.
	firstRetry = 2 * time.Second
	// checkTimeout ends one question.
	checkTimeout = 30 * time.Second
)

// Cache is the hub's cache.
type Cache interface {
	Source(kind string, key types.NamespacedName) (v1alpha1.Source, bool)
}

// Checker asks a source whether it can be used.
type Checker interface {
	// Check returns what it was seen at, for people, as in main@sha1:<commit>.
	Check(ctx context.Context, source v1alpha1.Source) (string, error)
}

// Reporter writes the status.
type Reporter interface {
	Source(ctx context.Context, source v1alpha1.Source, outcome report.SourceOutcome) error
}

// Options of a Reconciler. All but Clock are required.
type Options struct {
	// Kind of the sources.
	Kind     string
	Cache    Cache
	Checker  Checker
	Reporter Reporter
	Clock    clock.PassiveClock
}

// Reconciler of one kind of sources.
type Reconciler struct {
	Options
	controller.Feed

	mu sync.Mutex
	// notes on what was asked last; guarded by mu.
	notes map[types.NamespacedName]note
}

// note is what is remembered of one source.
type note struct {
	uid        types.UID
	generation int64
	secrets    int
	due        time.Time
	failures   int
	// told counts what the source told of itself; asked is how much of it was known
	// when it was last asked.
	told, asked int
}

// New makes a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{Options: options, notes: map[types.NamespacedName]note{}}
}

// Changed is told of each change of a source in the cache; those of other kinds are
// left alone.
func (r *Reconciler) Changed(old, next v1alpha1.Source) {
	if next == nil || next.SourceKind() != r.Kind {
		return
	}
	if old == nil || old.GetGeneration() != next.GetGeneration() || len(old.SourceStatus().CheckedSecrets) != len(next.SourceStatus().CheckedSecrets) {
		r.Add(types.NamespacedName{Namespace: next.GetNamespace(), Name: next.GetName()})
	}
}

// Told has a source asked at once, because it said that it changed.
func (r *Reconciler) Told(key types.NamespacedName) {
	r.mu.Lock()
	if known, ok := r.notes[key]; ok {
		known.told++
		r.notes[key] = known
	}
	r.mu.Unlock()
	r.Add(key)
}

// Reconcile asks one source, if it is time or if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	source, ok := r.Cache.Source(r.Kind, key)
	if !ok || source.GetDeletionTimestamp() != nil {
		r.mu.Lock()
		delete(r.notes, key)
		r.mu.Unlock()
		return reconcile.Result{}, nil
	}
	known, pause := r.begin(key, source)
	if pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}

	asked, cancel := context.WithTimeout(ctx, checkTimeout)
	revision, err := r.Checker.Check(asked, source)
	cancel()
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	next := jitter(source.SourceInterval())
	if err != nil {
		next = min(firstRetry<<min(known.failures, 16), next)
		known.failures++
	} else {
		known.failures = 0
	}
	outcome := outcomeOf(ctx, source, revision, err)
	if err := r.Reporter.Source(ctx, source, outcome); err != nil && !errors.Is(err, report.ErrGone) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.end(key, known, next)}, nil
}

// begin gives what is known of a source, or how long it need not be asked.
func (r *Reconciler) begin(key types.NamespacedName, source v1alpha1.Source) (note, time.Duration) {
	fresh := note{uid: source.GetUID(), generation: source.GetGeneration(), secrets: len(source.SourceStatus().CheckedSecrets)}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.notes[key]
	if known.uid != fresh.uid || known.generation != fresh.generation || known.secrets != fresh.secrets {
		return fresh, 0
	}
	if pause := known.due.Sub(r.Clock.Now()); pause > 0 && known.told == known.asked {
		return known, pause
	}
	known.asked = known.told
	return known, 0
}

// end remembers when a source is to be asked again, and says in how long.
func (r *Reconciler) end(key types.NamespacedName, known note, next time.Duration) time.Duration {
	known.due = r.Clock.Now().Add(next)
	r.mu.Lock()
	defer r.mu.Unlock()
	known.told = max(known.told, r.notes[key].told) // it may have told something meanwhile
	r.notes[key] = known
	if known.told != known.asked {
		return firstRetry
	}
	return next
}

// outcomeOf says what a check came to.
func outcomeOf(ctx context.Context, source v1alpha1.Source, revision string, err error) report.SourceOutcome {
	outcome := report.SourceOutcome{
		Generation: source.GetGeneration(), Revision: revision,
		Ready: report.Finding{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: found(source)},
	}
	if err == nil {
		return outcome
	}
	outcome.Revision = ""
	outcome.Ready = report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: err.Error()}
	var named controller.Reasoned
	if errors.As(err, &named) {
		outcome.Ready.Reason = named.Reason()
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("A source cannot be used", "kind", source.SourceKind(), "source", source.GetNamespace()+"/"+source.GetName(),
		"reason", outcome.Ready.Reason, "cause", err.Error())
	return outcome
}

// found says what a check that went well has shown.
func found(source v1alpha1.Source) string {
	switch source.SourceKind() {
	case v1alpha1.KindGitRepository:
		return "the ref was found"
	case v1alpha1.KindOCIRegistry:
		return "the artifact was found"
	}
	if strings.HasPrefix(source.SourceURL(), "oci:") {
		return "the registry answers"
	}
	return "the index was read"
}

// jitter spreads a pause by 5 % either way.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.1*float64(d))
}
