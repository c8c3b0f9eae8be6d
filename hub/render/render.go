// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/worker"
)

// Options of a Renderer.
type Options struct {
	// Objects and Sealed are where the two layers go.
	Objects, Sealed store.Store
	// MACKey marks sealed values. It must stay the same for ever: another one rolls
	// every Release out again.
	MACKey []byte
	// Worker is the program of the render worker; the zero value is the running one.
	Worker worker.Command
	// Slots is how many renders are made at once; 0 means one for each processor, at
	// least two.
	Slots int
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Renderer makes renders in worker processes.
type Renderer struct {
	objects, sealed store.Store
	macKey          []byte
	clock           clock.WithTicker
	metrics         *metrics
	pool            *pool
	shared          *shared
	failures        *failures
}

// New makes a Renderer. It starts nothing; workers are started by the first jobs,
// and kept ready while Run runs.
func New(o Options) (*Renderer, error) {
	if o.Objects == nil || o.Sealed == nil || len(o.MACKey) == 0 {
		return nil, errors.New("a renderer needs two stores and a MAC key")
	}
	if o.Worker.Path == "" {
		o.Worker = worker.Self(WorkerName)
	}
	if o.Slots <= 0 {
		o.Slots = max(2, runtime.NumCPU())
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	start := func() (*worker.Process, error) {
		m.starts.Inc()
		return worker.Start(o.Worker, workerLimits)
	}
	return &Renderer{
		objects: o.Objects, sealed: o.Sealed, macKey: o.MACKey, clock: o.Clock, metrics: m,
		pool: newPool(start, o.Slots, o.Clock), shared: newShared(maxShared), failures: newFailures(o.Clock),
	}, nil
}

// Run keeps a worker ready until ctx ends, then ends all workers and waits for
// renders that are being made.
func (r *Renderer) Run(ctx context.Context) error {
	ticker := r.clock.NewTicker(idleTime / 5)
	defer ticker.Stop()
	return r.pool.run(ctx, ticker.C())
}

// Render makes a render and stores both layers, or gives one that was made of the same
// inputs. One that failed for its inputs a short while ago fails again without being
// made, unless job.Fresh. It waits for a free worker as long as ctx allows. Every error is an *Error,
// except those of ctx, of Images and ErrStopped.
func (r *Renderer) Render(ctx context.Context, job Job) (Result, error) {
	static, err := r.static(&job)
	if err != nil {
		return Result{}, sourceFailed(err)
	}
	hash := func(ctx context.Context, reads []string) (string, error) { return inputsHash(ctx, &job, static, reads) }
	key, keyed := failureKey(&job, static)
	remember := func(err error) {
		if keyed && ctx.Err() == nil {
			r.failures.keep(key, err)
		}
	}
	if job.Fresh {
		result, _, err := r.make(ctx, &job, static)
		remember(err)
		return result, err
	}
	if keyed {
		if err := r.failures.find(key); err != nil {
			r.metrics.spared.Inc()
			return Result{}, err
		}
	}
	for {
		result, found, err := r.shared.find(ctx, job.Tenant, static, hash)
		if err != nil {
			return Result{}, err
		}
		if found && r.stored(ctx, result) {
			r.metrics.shared.Inc()
			result.Shared = true
			return result, nil
		}
		if found {
			r.shared.forget(job.Tenant, result)
		}
		// Until a render of this static input is known, one is made at a time: it will
		// tell what the others have to differ in to need their own.
		key := job.Tenant + "\x00" + static
		if sets := r.shared.readSets(job.Tenant, static); len(sets) > 0 {
			if key, err = hash(ctx, sets[0]); err != nil {
				return Result{}, err
			}
			key = job.Tenant + "\x00" + key
		}
		f, mine := r.shared.begin(key)
		if mine {
			f.result, f.reads, f.err = r.make(ctx, &job, static)
			remember(f.err)
			if f.err != nil && ctx.Err() == nil {
				var hashErr error
				if f.hash, hashErr = hash(ctx, f.reads); hashErr != nil {
					f.hash = "" // then nobody shares the failure
				}
			}
			r.shared.end(key, f)
			return f.result, f.err
		}
		select {
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		case <-f.done:
		}
		if f.err != nil && f.hash != "" {
			if own, err := hash(ctx, f.reads); err == nil && own == f.hash {
				return Result{}, f.err // the same inputs fail in the same way
			}
		}
	}
}

// stored says whether the layers of a render are still there.
func (r *Renderer) stored(ctx context.Context, result Result) bool {
	has := func(s store.Store, digest string) bool {
		blob, _, err := s.Open(ctx, digest)
		if err != nil {
			return false // it is made anew
		}
		return blob.Close() == nil
	}
	return has(r.objects, result.Objects.Digest) && (result.Sealed == nil || has(r.sealed, result.Sealed.Digest))
}

// make makes a render, in as many rounds as it takes to give it all that it asks for.
func (r *Renderer) make(ctx context.Context, job *Job, static string) (Result, []string, error) {
	scope, err := r.scope(job, static)
	if err != nil {
		return Result{}, nil, err
	}
	work := *job
	work.Content.World.Images = map[string]string{}
	work.Content.AskCharts = job.Charts != nil
	for range maxRounds {
		m, err := r.pool.acquire(ctx, job.Tenant)
		switch {
		case errors.Is(err, ErrStopped) || ctx.Err() != nil && err != nil:
			return Result{}, nil, err
		case err != nil:
			return Result{}, nil, failed(v1alpha1.ReasonRenderFailed, err)
		}
		start := r.clock.Now()
		answer, usable, err := r.round(ctx, m, &work, scope)
		r.metrics.rendered(answer, err, r.clock.Since(start))
		// A worker's folder that cannot be removed is no reason to throw a render away.
		if releaseErr := r.pool.release(m, usable); releaseErr != nil && err != nil {
			err = errors.Join(err, releaseErr)
		}
		if err != nil && ctx.Err() != nil {
			return Result{}, nil, context.Cause(ctx)
		}
		if err != nil {
			return Result{}, answer.reads, err
		}
		if !answer.needs.none() {
			if scope, err = r.supply(ctx, &work, scope, answer.needs); err != nil {
				return Result{}, nil, err
			}
			continue
		}
		result := answer.result
		if job.Charts != nil && !work.Content.AskCharts {
			result.Reads = slices.Sorted(slices.Values(append(slices.Clone(result.Reads), facts.Charts)))
		}
		if result.InputsHash, err = inputsHash(ctx, &work, static, result.Reads); err != nil {
			return Result{}, nil, err
		}
		r.shared.keep(job.Tenant, static, result)
		return result, nil, nil
	}
	return Result{}, nil, failed(v1alpha1.ReasonRenderFailed, errNeeds)
}

// answer is what one round gave: a result, or what the render needs.
type answer struct {
	result Result
	needs  needs
	reads  []string // of a failure
}

// round uses one worker once; usable says whether it may have another job.
func (r *Renderer) round(ctx context.Context, m *member, job *Job, scope []string) (got answer, usable bool, err error) {
	files, err := job.Snapshot.Part(scope)
	if err != nil {
		return got, true, sourceFailed(err)
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	salt := make([]byte, 32)
	rand.Read(salt) // never fails, it ends the process instead
	layers := newLayers(ctx, r, salt)
	var failure *workerFailure
	var done workerDone
	err = m.Do(ctx, jobTime, workerJob{Job: job.Content, Scope: scope}, tagged{files}, func(kind worker.Kind, payload []byte) error {
		switch kind {
		case worker.Data:
			return layers.write(payload)
		case worker.Done:
			return json.Unmarshal(payload, &done)
		case worker.Failed:
			failure = &workerFailure{}
			return json.Unmarshal(payload, failure)
		default:
			return worker.ErrFrame
		}
	})
	var broken *sourceError
	switch {
	case errors.As(err, &broken):
		err = sourceFailed(broken.err)
	case err == nil && failure != nil && !failure.Needs.none():
		layers.abandon()
		got.needs = failure.Needs
		return got, true, nil
	case err == nil && failure != nil:
		err = &Error{reason: failure.reason(), err: errors.New(failure.Message), ofInputs: true}
		got.reads = bounded(failure.Reads)
		usable = true
	}
	if got.result, err = layers.finish(err); err != nil {
		return got, usable, err
	}
	if got.result.Count != done.Count {
		return answer{}, false, failed(v1alpha1.ReasonRenderFailed, fmt.Errorf("the worker says %d objects and sent %d", done.Count, got.result.Count))
	}
	done.describe(&got.result)
	return got, true, nil
}

// reason takes only those that a worker can know.
func (f *workerFailure) reason() string {
	switch f.Reason {
	case v1alpha1.ReasonEmptyRender, v1alpha1.ReasonPathNotFound:
		return f.Reason
	}
	return v1alpha1.ReasonRenderFailed
}

// tagged marks errors of the snapshot, to tell them from those of the worker.
type tagged struct{ r io.Reader }

type sourceError struct{ err error }

func (s *sourceError) Error() string { return s.err.Error() }
func (s *sourceError) Unwrap() error { return s.err }

func (t tagged) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &sourceError{err}
	}
	return n, err
}

var _ Source = (*source.Snapshot)(nil)

// Timeout is how long a render may take once it has a worker.
const Timeout time.Duration = jobTime
