// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a Runner. Those without a stated default are required.
type Options struct {
	// Config reaches the cluster. Its rate limits are not used.
	Config *rest.Config
	// HubID and ClusterUID are the only ones whose orders are accepted.
	HubID      string
	ClusterUID string
	State      State
	Blobs      Blobs
	// Report takes what there is to say. It must not block.
	Report func(tunnel.Report)
	// Verify checks an order that was read back from State, as it was checked when
	// it came. Nil: not checked.
	Verify func(tunnel.Signed) error
	// HubTime is the hub's clock as last heard; nil: the local clock.
	HubTime    func() time.Time
	Clock      clock.WithTicker      // default: the real one
	Logger     logr.Logger           // default: none
	Registerer prometheus.Registerer // default: none
}

// Features are what orders may require of this engine.
var features = map[string]bool{
	tunnel.FeatureApply: true, tunnel.FeatureRemove: true, tunnel.FeatureRelease: true,
	tunnel.FeatureSealed: true, tunnel.FeatureReplace: true,
}

// Features lists what orders may require of this engine, sorted.
func Features() []string { return sortedSet(features) }

// Runner carries orders out on one cluster. Make one with New, start it with Run.
type Runner struct {
	hub        string
	cluster    string
	target     *target
	discovery  *discovery
	state      State
	blobs      Blobs
	out        func(tunnel.Report)
	verify     func(tunnel.Signed) error
	hubTime    func() time.Time
	clock      clock.WithTicker
	log        logr.Logger
	meter      *metrics
	slots      chan struct{}
	tidyNotify chan struct{}

	mu       sync.Mutex
	releases map[string]*release // by UID; guarded by mu
	holds    map[string]int      // digests that are being staged; guarded by mu
	interned map[resource]*resource

	// lifeMu guards ctx and group, which are set while the Runner runs.
	watchMu sync.Mutex
	watches map[resource]*watch // guarded by watchMu
	ctx     context.Context     // of the run; nil before; guarded by watchMu
	group   *errgroup.Group     // guarded by watchMu
	ended   bool                // guarded by watchMu

	loaded atomic.Bool
}

// New makes a Runner. It starts nothing.
func New(o Options) (*Runner, error) {
	switch {
	case o.Config == nil, o.State == nil, o.Blobs == nil, o.Report == nil:
		return nil, errors.New("engine: Config, State, Blobs and Report are required")
	case o.HubID == "" || o.ClusterUID == "":
		return nil, errors.New("engine: HubID and ClusterUID are required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.HubTime == nil {
		o.HubTime = o.Clock.Now
	}
	if o.Verify == nil {
		o.Verify = func(tunnel.Signed) error { return nil }
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	meter := newMetrics(o.Registerer)
	t, err := newTarget(o.Config, o.Clock, meter)
	if err != nil {
		return nil, err
	}
	return &Runner{
		hub: o.HubID, cluster: o.ClusterUID, target: t, discovery: newDiscovery(t),
		state: o.State, blobs: o.Blobs, out: o.Report, verify: o.Verify, hubTime: o.HubTime,
		clock: o.Clock, log: o.Logger, meter: meter, slots: make(chan struct{}, maxActive),
		tidyNotify: make(chan struct{}, 1),
		releases:   map[string]*release{}, holds: map[string]int{}, interned: map[resource]*resource{},
		watches: map[resource]*watch{},
	}, nil
}

// Run reads what State has, enforces it, and carries out what is accepted, until ctx
// ends. It returns when all of its goroutines have.
func (rn *Runner) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(logr.NewContext(ctx, rn.log))
	if err := rn.loadPatiently(ctx); err != nil {
		return nil //nolint:nilerr // the end was asked for before the state could be read
	}
	rn.loaded.Store(true)
	rn.watchMu.Lock()
	rn.ctx, rn.group = ctx, group
	for _, w := range rn.watches {
		rn.startWatch(w)
	}
	rn.watchMu.Unlock()
	group.Go(func() error { return rn.keepTidy(ctx) })
	rn.mu.Lock()
	all := make([]*release, 0, len(rn.releases))
	for _, r := range rn.releases {
		all = append(all, r)
	}
	rn.mu.Unlock()
	for _, r := range all {
		r.mu.Lock()
		r.dirty = true
		r.wakeLocked()
		r.mu.Unlock()
	}
	<-ctx.Done()
	rn.watchMu.Lock()
	rn.ended = true
	rn.watchMu.Unlock()
	err := group.Wait()
	rn.target.client.CloseIdleConnections()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Loaded says whether a Run has read the state.
func (rn *Runner) Loaded() bool { return rn.loaded.Load() }

// start starts the goroutine of a release; false when the Runner does not run.
func (rn *Runner) start(r *release) bool {
	rn.watchMu.Lock()
	defer rn.watchMu.Unlock()
	if rn.ctx == nil || rn.ended || rn.ctx.Err() != nil {
		return false
	}
	ctx := rn.ctx
	rn.group.Go(func() error {
		r.run(ctx)
		return nil
	})
	return true
}

// loadPatiently reads the state, and goes on trying while the API server is away.
func (rn *Runner) loadPatiently(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := rn.load(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			rn.log.Error(err, "state not read, will be tried again")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-rn.clock.After(backoff(attempt, retryMin/4, objectRetryMax)):
		}
	}
}

// load takes in the records. What cannot be verified is not enforced; nothing of it
// is deleted either.
func (rn *Runner) load(ctx context.Context) error {
	err := rn.state.LoadRecords(ctx, func(record *Record) error {
		// There may be one already: an order can be accepted before the state is read.
		rn.getOrMake(record.UID).restore(ctx, record)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	return nil
}

// getOrMake gives the release with a UID.
func (rn *Runner) getOrMake(uid string) *release {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	r := rn.releases[uid]
	if r == nil {
		r = rn.newRelease(uid)
		rn.releases[uid] = r
		rn.meter.releases.Set(float64(len(rn.releases)))
	}
	return r
}

func (rn *Runner) newRelease(uid string) *release {
	return &release{
		runner: rn, uid: uid, marks: newMarks(rn.hub, uid), log: rn.log.WithValues("release", uid),
		notify: make(chan struct{}, 1), objects: map[manifest.Identity]*object{},
		drifts: map[*object]time.Time{}, kept: map[*object]map[string]any{},
		finding: tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonProgressing},
		counter: rn.clock.Now().UnixMilli(),
	}
}

// restore sets a release up as its record says. An order that was accepted before
// the record was read stays, if it is newer; nothing was done for it yet.
func (r *release) restore(ctx context.Context, record *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restored {
		return // read twice, since the first reading was cut short
	}
	r.restored = true
	order, signed := r.order, r.signed
	r.restoreLocked(ctx, record)
	if order.Sequence > r.order.Sequence {
		r.order, r.signed, r.ref = order, signed, order.Release
		r.settled, r.done = false, false
		r.resumed = record.Attempt != nil
	}
}

func (r *release) restoreLocked(ctx context.Context, record *Record) {
	r.order = tunnel.Order{}
	r.ref, r.signed = record.Release, record.Order
	r.log = r.log.WithValues("name", record.Release.Namespace+"/"+record.Release.Name)
	r.counter = max(r.counter, record.Counter)
	r.reserved = r.counter
	r.applied, r.attempt, r.done, r.op = record.Applied, record.Attempt, record.Done, record.Operation
	renders := map[string]*Render{}
	for _, render := range []*Render{record.Applied, record.Attempt} {
		if render != nil {
			renders[render.Objects.Digest] = render
		}
	}
	for _, e := range record.Inventory {
		o := &object{
			id: e.Identity, version: e.Version, wave: e.Wave, line: int32(e.Line), digest: e.Digest,
			render: renders[e.Render], uid: e.UID, created: e.Created, orphaned: e.Orphaned, since: r.now(),
		}
		if want, ok := parseProjection(e.Hash); ok && o.render != nil {
			o.want, o.applied = want, true
		}
		r.objects[o.id] = o
		found, err := r.runner.discovery.find(ctx, o.id.Group, o.version, o.id.Kind)
		if err != nil {
			r.log.Info("kind not found at start", "object", o.id.String(), "error", err.Error())
			continue
		}
		o.res = r.runner.intern(found)
		r.runner.track(o.res, r, o, false)
	}
	order, err := decodeOrder(record.Order)
	if err == nil {
		err = r.runner.verify(record.Order)
	}
	if err != nil {
		r.refusal = &tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonOrderRefused,
			Message: clip("the order kept in the cluster: "+err.Error(), maxMessage),
		}
		r.log.Error(err, "the order kept in the cluster is not enforced")
		return
	}
	r.order = order
	if r.done || (r.applied != nil && r.applied.Sequence == order.Sequence) {
		r.handled, r.settled = order.Sequence, true
		r.finding = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied}
		r.inventoryNew = !r.done
		r.total = len(r.objects)
		for _, o := range r.objects {
			if o.orphaned {
				r.total--
			}
		}
		return
	}
	r.resumed = true
}

func decodeOrder(signed tunnel.Signed) (tunnel.Order, error) {
	var order tunnel.Order
	if err := json.Unmarshal(signed.Payload, &order); err != nil {
		return order, fmt.Errorf("decode order: %w", err)
	}
	return order, nil
}

// Accept takes an order whose signature was verified. An order that is known already
// is no error; one that is refused gives a *Refusal, and is reported.
func (rn *Runner) Accept(order tunnel.Order, signed tunnel.Signed) error {
	uid := order.Release.UID
	rn.mu.Lock()
	r := rn.releases[uid]
	count := len(rn.releases)
	rn.mu.Unlock()
	held := int64(0)
	if r != nil {
		r.mu.Lock()
		held = r.order.Sequence
		r.mu.Unlock()
	}
	if r != nil && order.Sequence == held && order.ClusterUID == rn.cluster && order.Hub == rn.hub {
		return nil
	}
	refusal := rn.check(order, held)
	if refusal == nil && r == nil && count >= maxReleases {
		refusal = &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: ErrTooMany}
	}
	if refusal != nil {
		rn.refuse(r, order, refusal)
		return refusal
	}
	if r == nil {
		r = rn.getOrMake(uid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		// Its last order was acknowledged this moment. A UID is never used again, so
		// this order can only be older.
		return &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: ErrOlderSequence}
	}
	if order.Sequence <= r.order.Sequence {
		return nil // another call was quicker
	}
	r.order, r.signed, r.ref = order, signed, order.Release
	r.log = rn.log.WithValues("release", uid, "name", order.Release.Namespace+"/"+order.Release.Name)
	r.retryAt, r.retries = time.Time{}, 0
	r.refusal, r.refused = nil, 0
	r.done, r.doneAt = false, 0
	r.wakeLocked()
	return nil
}

// check says why an order cannot be accepted; nil: it can.
func (rn *Runner) check(order tunnel.Order, held int64) *Refusal {
	refuse := func(reason string, err error) *Refusal {
		return &Refusal{Reason: reason, Sequence: order.Sequence, Err: err}
	}
	switch {
	case order.Hub != rn.hub, order.ClusterUID != rn.cluster:
		return refuse(v1alpha1.ReasonOrderRefused, ErrOtherCluster)
	case order.Release.UID == "":
		return refuse(v1alpha1.ReasonOrderRefused, ErrMalformed)
	case order.Sequence <= held:
		return refuse(v1alpha1.ReasonOrderRefused, ErrOlderSequence)
	case order.Sequence > rn.hubTime().Add(maxAhead).UnixMilli():
		return refuse(v1alpha1.ReasonOrderRefused, ErrAheadOfTime)
	}
	for _, f := range order.Requires {
		if !features[f] {
			return refuse(v1alpha1.ReasonAgentTooOld, fmt.Errorf("%w: %s", ErrFeatureMissing, clip(f, 64)))
		}
	}
	switch order.Verb {
	case tunnel.VerbRemove, tunnel.VerbRelease:
		return nil
	case tunnel.VerbApply:
		for _, layer := range []*tunnel.Layer{order.Objects, order.Sealed} {
			if layer == nil && layer == order.Sealed {
				continue
			}
			if layer == nil || !digestForm.MatchString(layer.Digest) || layer.Size <= 0 || layer.Size > maxLayer {
				return refuse(v1alpha1.ReasonOrderRefused, fmt.Errorf("%w: layers", ErrMalformed))
			}
		}
		return nil
	}
	return refuse(v1alpha1.ReasonAgentTooOld, fmt.Errorf("%w: verb %s", ErrFeatureMissing, clip(string(order.Verb), 64)))
}

// refuse reports that an order was not accepted. What runs stays as it is.
func (rn *Runner) refuse(r *release, order tunnel.Order, refusal *Refusal) {
	rn.log.Info("order refused", "release", order.Release.UID, "sequence", order.Sequence, "reason", refusal.Reason, "error", refusal.Err.Error())
	rn.tellRefused(r, order.Release, order.Sequence, tunnel.Finding{Status: tunnel.False, Reason: refusal.Reason, Message: refusal.Error()})
}

func (rn *Runner) tellRefused(r *release, ref tunnel.ReleaseRef, sequence int64, finding tunnel.Finding) {
	rn.meter.refusals.WithLabelValues(finding.Reason).Inc()
	finding.Message = clip(finding.Message, maxMessage)
	if r != nil {
		r.mu.Lock()
		r.refusal, r.refused, r.dirty = &finding, sequence, true
		r.wakeLocked()
		r.mu.Unlock()
		return
	}
	if ref.UID == "" {
		return
	}
	unknown := tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonOrderRefused}
	rn.out(tunnel.Report{
		Release: ref, Counter: rn.clock.Now().UnixMilli(), Refused: &finding, RefusedSequence: sequence,
		Settled: true, Applied: finding, InSync: unknown, Healthy: unknown, At: rn.clock.Now(),
	})
}

// Refuse reports an order that was not accepted for a reason found before Accept, as
// a signature that does not verify. What runs stays as it is.
func (rn *Runner) Refuse(release tunnel.ReleaseRef, sequence int64, finding tunnel.Finding) {
	rn.mu.Lock()
	r := rn.releases[release.UID]
	rn.mu.Unlock()
	rn.tellRefused(r, release, sequence, finding)
}

// Acknowledged says that the hub has taken a report over.
func (rn *Runner) Acknowledged(uid string, counter int64) {
	rn.mu.Lock()
	r := rn.releases[uid]
	rn.mu.Unlock()
	if r == nil {
		return
	}
	r.mu.Lock()
	if r.inventoryNew && r.inventorySent > 0 && counter >= r.inventorySent {
		r.inventoryNew = false
		// The next report differs by the inventory alone: not worth a report.
		if sum, err := fingerprint(r.buildLocked()); err == nil && !r.dirty {
			r.reported = sum
		}
	}
	forget := r.done && r.doneAt > 0 && counter >= r.doneAt
	if forget {
		r.stopping = true
	}
	r.mu.Unlock()
	if forget {
		rn.forget(r)
	}
}

// forget drops a Release that was removed or released, now that the hub knows.
func (rn *Runner) forget(r *release) {
	rn.mu.Lock()
	delete(rn.releases, r.uid)
	rn.meter.releases.Set(float64(len(rn.releases)))
	rn.mu.Unlock()
	rn.watchMu.Lock()
	defer rn.watchMu.Unlock()
	if rn.ctx == nil || rn.ended {
		return
	}
	ctx := rn.ctx
	rn.group.Go(func() error {
		if err := rn.state.DeleteRecord(ctx, r.uid); err != nil && ctx.Err() == nil {
			// It is read again at the next start, reported again and acknowledged again.
			r.log.Error(err, "record of a removed release not deleted")
		}
		rn.tidy()
		return nil
	})
}

// Have maps Release UIDs to the sequence of the order that is held.
func (rn *Runner) Have() map[string]int64 {
	have := map[string]int64{}
	for _, r := range rn.all() {
		r.mu.Lock()
		if r.order.Sequence > 0 {
			have[r.uid] = r.order.Sequence
		}
		r.mu.Unlock()
	}
	return have
}

func (rn *Runner) all() []*release {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	all := make([]*release, 0, len(rn.releases))
	for _, r := range rn.releases {
		all = append(all, r)
	}
	return all
}

// Head takes what the hub has for this Cluster, by Release UID, as a signed head has
// just proven. What is here beyond it is unknown to the hub: kept, counted, never
// deleted for that.
func (rn *Runner) Head(_ tunnel.Head, orders map[string]int64) {
	unknown := 0
	for uid := range rn.Have() {
		if _, known := orders[uid]; !known {
			unknown++
		}
	}
	rn.meter.unknown.Set(float64(unknown))
}

// Newest gives the newest report of a Release, made now; false if there is none.
func (rn *Runner) Newest(uid string) (tunnel.Report, bool) {
	rn.mu.Lock()
	r := rn.releases[uid]
	rn.mu.Unlock()
	if r == nil {
		return tunnel.Report{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.buildLocked()
	out.Counter, out.At = r.counter, r.now()
	out.Inventory = r.inventoryLocked()
	return out, true
}

// intern gives one pointer per resource.
func (rn *Runner) intern(r resource) *resource {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	if p := rn.interned[r]; p != nil {
		return p
	}
	rn.interned[r] = &r
	return &r
}
