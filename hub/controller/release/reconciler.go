// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a Reconciler. Texts, Namespaces, Clock and Registerer may be left out.
type Options struct {
	// KeyID of the key that signs orders. Those that another signed are signed anew, at
	// a bounded pace; as long as that key is accepted they are as good as any.
	KeyID string
	// Renderer's version, for provenance.
	Version string

	Cache      Cache
	Index      Index
	Sources    Sources
	Texts      Texts
	Renderer   Renderer
	Orders     Orders
	Graves     Graves
	Reporter   Reporter
	Store      Store
	Namespaces Namespaces
	// Layers of renders; nil: hand-overs are not looked at.
	Layers Layers
	// Rules of health; nil: there are none but those that are built in.
	Rules Rules

	Clock      clock.PassiveClock
	Registerer prometheus.Registerer
}

// Reconciler of Releases.
type Reconciler struct {
	Options
	controller.Feed
	metrics *metrics
	// resign paces orders that are signed anew since their key is lost, or to be retired.
	resign *rate.Limiter
	// waiters wait for others, seen is what each was looked at with.
	waiters waiters
	seen    sightings
	// predecessors are asked about what heirs have in their renders, see heir.go.
	predecessors waiters
	layers       identities
	// looks are what each was found to be rendered to, see sibling.go.
	looks looks

	mu sync.Mutex
	// notes on what was looked at last; guarded by mu. A reconcile owns the note of
	// its Release while it runs.
	notes map[types.NamespacedName]*note
}

// note is what is remembered of one Release between reconciles. All of it can
// be lost: then a Release is looked at once more than needed.
type note struct {
	uid types.UID
	// first is when it was first looked at.
	first time.Time
	// generation and revision that were looked at, and the hash they gave.
	generation int64
	revision   string
	inputs     string
	// due is when its source is looked at again without an event.
	due time.Time
	// asked is the request that the remote was already asked for.
	asked string
	// failed is what became of a render of these inputs.
	failed *report.Finding
	// attempts since something that may go away by itself was last in order.
	attempts int
	// awaits says since when its order waits for siblings.
	awaits awaits
	// issued is the order that was made last.
	issued issued
}

// New makes a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{
		Options: options, metrics: newMetrics(options.Registerer), notes: map[types.NamespacedName]*note{},
		resign: rate.NewLimiter(resignPerSecond, resignPerSecond),
	}
}

func (r *Reconciler) note(key types.NamespacedName, uid types.UID) *note {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.notes[key]
	if n == nil || n.uid != uid {
		n = &note{uid: uid, first: r.Clock.Now()}
		r.notes[key] = n
	}
	return n
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.notes, key)
}

// Reconcile one Release.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	release, ok := r.Cache.Release(key)
	if !ok {
		r.forget(key)
		r.seen.forget(key)
		r.looks.forget(key)
		r.wake(key)
		return reconcile.Result{}, nil
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("release", key.String(), "cluster", key.Namespace+"/"+release.Spec.ClusterRef.Name)
	ctx = logr.NewContext(ctx, log)
	if release.DeletionTimestamp != nil {
		return r.delete(ctx, key, release)
	}
	started := r.Clock.Now()
	if r.early(key, release) || r.unheard(r.note(key, release.UID), release) {
		return reconcile.Result{RequeueAfter: arrivalPause}, nil
	}
	w := &work{
		key: key, release: release, note: r.note(key, release.UID), request: requested(release),
		outcome: report.Outcome{Generation: release.Generation},
	}
	if release.Spec.Suspend {
		r.suspend(w)
	} else if err := r.proceed(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	if w.outcome.Order != nil {
		log = log.WithValues("digest", w.wanted.objects.Digest, "revision", w.wanted.revision)
	}
	err := r.Reporter.Release(ctx, key, release.UID, w.outcome)
	if errors.Is(err, report.ErrGone) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("report on %s: %w", key, err)
	}
	r.metrics.seconds.Observe(r.Clock.Since(started).Seconds())
	news := r.seen.put(key, seen{release.UID, release.Generation, w.revision.Key})
	if what, ok := w.look(); ok {
		news = r.looks.put(key, what) || news
	}
	if news {
		r.wake(key)
	}
	if w.outcome.Order != nil {
		w.note.issued = issued{release.Status.Sequence, r.Clock.Now()}
		r.metrics.ordered.Inc()
		if order, ok := r.Orders.Ordered(release.UID); ok {
			log = log.WithValues("sequence", order.Sequence)
		}
		log.Info("Release is ordered")
	}
	return reconcile.Result{RequeueAfter: r.next(w)}, nil
}

// proceed takes a Release from its source to its order.
func (r *Reconciler) proceed(ctx context.Context, w *work) error {
	if err := r.look(ctx, w); err != nil {
		return err
	}
	w.adopted()
	r.rulesOf(ctx, w)
	ready := r.gate(w)
	if ready && w.rendering() {
		if err := r.render(ctx, w); err != nil {
			return err
		}
	}
	return r.finish(ctx, w, ready)
}

// early says that a new Release is best looked at a moment later, since what it
// refers to is not there yet: they are often made together, and the kinds are
// watched apart.
func (r *Reconciler) early(key types.NamespacedName, release *corev1alpha1.Release) bool {
	if release.Status.ObservedGeneration != 0 || r.Clock.Since(r.note(key, release.UID).first) >= arrivals {
		return false
	}
	_, missing := r.source(release)
	_, cluster := r.Cache.Cluster(types.NamespacedName{Namespace: key.Namespace, Name: release.Spec.ClusterRef.Name})
	return missing != nil || !cluster
}

// next is the pause until the Release is looked at without an event.
func (r *Reconciler) next(w *work) time.Duration {
	if w.soon {
		return soonPause/2 + rand.N(soonPause)
	}
	if w.pause > 0 {
		return w.pause
	}
	if w.again {
		pause := min(firstBackoff<<min(w.note.attempts, 16), lastBackoff)
		w.note.attempts++
		return pause/2 + rand.N(pause)
	}
	w.note.attempts = 0
	return max(w.note.due.Sub(r.Clock.Now()), firstBackoff)
}

// interval of a Release, somewhat varied.
func interval(release *corev1alpha1.Release) time.Duration {
	d := defaultInterval
	if given := release.Spec.SyncPolicy.Interval; given != nil && given.Duration > 0 {
		d = given.Duration
	}
	return d + time.Duration((rand.Float64()-0.5)*2*intervalJitter*float64(d))
}

// work is one reconcile on its way through the steps.
type work struct {
	key     types.NamespacedName
	release *corev1alpha1.Release
	note    *note
	request request
	outcome report.Outcome

	// fresh: the source is looked at anew, not only for the sake of a resync.
	fresh    bool
	want     source.Want
	revision source.Revision
	// inputs is the hash of what a render would be made of now; empty when the
	// source could not be used.
	inputs   string
	snapshot render.Source
	job      render.Job // set with snapshot
	cluster  *corev1alpha1.Cluster
	rules    rules
	// rendered replaces the render of the status.
	rendered *report.Render
	// made is the render of the inputs of now, whether it was there or made; nil: there is
	// none yet.
	made *corev1alpha1.RenderStatus
	// wanted is what the order would enforce.
	wanted wanted
	// again: something failed that may go away by itself.
	again bool
	// soon: something will be so in a moment that is not yet. pause is how long at most it
	// is until the Release is looked at again, unless it is 0; hush: what it waits for
	// meanwhile is not told.
	soon  bool
	pause time.Duration
	hush  bool
	// held: an order that was adopted stays; goOn: it does so no longer, or asked for
	// by somebody, as opposed to a change of the source alone.
	held, goOn, asked bool
	// answered is a request that was made before that order was adopted.
	answered request
}

// fail records why there is no render.
func (w *work) fail(reason, message string) {
	w.outcome.Rendered = &report.Finding{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// rendering says whether a render is to be made: its inputs are another's, a
// force was asked for, or there is none.
func (w *work) rendering() bool {
	if w.inputs == "" || w.outcome.Rendered != nil {
		return false
	}
	status := &w.release.Status
	if w.held {
		return false
	}
	return w.goOn || w.inputs != status.InputsHash || w.request.force != "" || status.Render == nil
}

// wanted is a render that an order names.
type wanted struct {
	objects  tunnel.Layer
	sealed   *tunnel.Layer
	revision string
	// namespace that it was made for.
	namespace string
	// hooks: it has some; force: they are to run although nothing changed.
	hooks, force bool
}
