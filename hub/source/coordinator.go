// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/git"
	"kumodo.io/convoy/hub/source/snapshot"
	"kumodo.io/convoy/hub/worker"
)

// Snapshot is the tree of one commit.
type Snapshot = snapshot.Snapshot

// Options of a Coordinator.
type Options struct {
	// CacheDir is the folder of the snapshots; made if need be. One process has it.
	CacheDir string
	// CacheBytes of snapshots on disk; 0 means 2 GiB.
	CacheBytes int64
	// Allow opens address ranges that are denied otherwise (--source-allow-cidr),
	// also for http. Deny closes more: the host's Services.
	Allow, Deny []netip.Prefix
	// Secrets of the host cluster.
	Secrets SecretGetter
	// Worker is the program of the fetch worker; the zero value is the running one.
	Worker worker.Command
	// Clock is the real one by default.
	Clock clock.PassiveClock
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Coordinator looks up refs and fetches commits, each once for all who want it.
type Coordinator struct {
	policy  address.Policy
	secrets SecretGetter
	command worker.Command
	clock   clock.PassiveClock
	metrics *metrics
	cache   *cache

	resolving *semaphore.Weighted
	fetching  *semaphore.Weighted
	resolves  flights[Revision]
	snapshots flights[*Snapshot]

	ctx    context.Context // of all flights; ends with Run
	cancel context.CancelFunc

	life   sync.Mutex
	closed bool
	group  sync.WaitGroup // flights; added to under life, while not closed

	mu    sync.Mutex
	known map[string]*knowledge
}

// knowledge of one (source, ref).
type knowledge struct {
	revision Revision
	failed   error // of the newest attempt; nil after a success
	pause    time.Duration
	retryAt  time.Time
	asked    time.Time
}

// New makes a Coordinator. It takes over the cache on disk and starts nothing.
func New(o Options) (*Coordinator, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.Worker.Path == "" {
		o.Worker = worker.Self(WorkerName)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	cache, err := openCache(o.CacheDir, o.CacheBytes, o.Clock, m)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		policy:  address.Policy{Allow: o.Allow, Deny: o.Deny},
		secrets: o.Secrets, command: o.Worker, clock: o.Clock, metrics: m, cache: cache,
		resolving: semaphore.NewWeighted(maxResolves), fetching: semaphore.NewWeighted(maxFetches),
		known: map[string]*knowledge{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Run waits for ctx and then ends whatever is being fetched. The Coordinator can
// be used before Run and until it returns.
func (c *Coordinator) Run(ctx context.Context) error {
	<-ctx.Done()
	c.cancel()
	c.life.Lock()
	c.closed = true
	c.life.Unlock()
	c.group.Wait()
	return nil
}

// begin counts a flight, unless the Coordinator has ended.
func (c *Coordinator) begin() bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed || c.ctx.Err() != nil {
		return false
	}
	c.group.Add(1)
	return true
}

func identity(repo *v1alpha1.GitRepository) string {
	return sourceKey(repo.Namespace, repo.Name, string(repo.UID), repo.Spec.URL)
}

// Resolve says which commit a source's ref leads to, or the ref that a Release
// gives in its place (empty: none). An answer younger than maxAge is given from
// memory; maxAge 0 asks the remote.
//
// After a failure the remote is left alone for a while that grows with each one,
// up to a minute (or as long as the server asked for); meanwhile the same error
// is given, except with maxAge 0. The context bounds how long the caller waits,
// not how long the remote is waited for.
func (c *Coordinator) Resolve(ctx context.Context, repo *v1alpha1.GitRepository, ref string, maxAge time.Duration) (Revision, error) {
	w, err := want(repo.Spec.Ref, ref)
	if err != nil {
		return Revision{}, err
	}
	if w.commit != "" {
		return Revision{Display: commitPrefix + w.commit, Commit: w.commit, ResolvedAt: c.clock.Now()}, nil
	}
	key := resolveKey(repo, w)
	c.mu.Lock()
	k := c.known[key]
	if revision, ok, err := c.answerLocked(k, maxAge); ok {
		c.mu.Unlock()
		known(c.metrics.resolves)
		return revision, err
	}
	var last error
	if k != nil && maxAge > 0 {
		last = k.failed
	}
	c.mu.Unlock()
	flight := c.resolves.start(c, key, func(ctx context.Context) (Revision, error) { return c.ask(ctx, key, repo, w) })
	if !flight.first && last != nil {
		// The remote failed the last time and somebody is asking it again: one waits
		// for it, the others need not.
		return Revision{}, last
	}
	return flight.wait(ctx)
}

// resolveKey tells apart all that decides about an answer.
func resolveKey(repo *v1alpha1.GitRepository, w wanted) string {
	key := identity(repo) + "\x00" + w.text
	for _, secret := range []*v1alpha1.SecretReference{repo.Spec.SecretRef, repo.Spec.CASecretRef} {
		key += "\x00"
		if secret != nil {
			key += secret.Name
		}
	}
	for _, name := range repo.Status.CheckedSecrets {
		key += "\x00" + name
	}
	return key
}

// answerLocked gives what is known, if it is good enough.
func (c *Coordinator) answerLocked(k *knowledge, maxAge time.Duration) (Revision, bool, error) {
	if k == nil {
		return Revision{}, false, nil
	}
	now := c.clock.Now()
	if k.failed != nil {
		var own *Error
		limited := errors.As(k.failed, &own) && own.retryAfter > 0
		return Revision{}, now.Before(k.retryAt) && (maxAge > 0 || limited), k.failed
	}
	return k.revision, maxAge > 0 && now.Sub(k.revision.ResolvedAt) < maxAge, nil
}

// ask looks a ref up at the remote and remembers the answer.
func (c *Coordinator) ask(ctx context.Context, key string, repo *v1alpha1.GitRepository, w wanted) (Revision, error) {
	start := c.clock.Now()
	revision, err := c.lookUp(ctx, repo, w)
	err = explain(err)
	c.metrics.resolved(err, c.clock.Since(start))
	if c.ctx.Err() != nil {
		return Revision{}, ErrStopped
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[key]
	if k == nil {
		if len(c.known) >= maxKnown {
			c.dropOldestLocked()
		}
		k = &knowledge{}
		c.known[key] = k
	}
	k.failed, k.asked = err, c.clock.Now()
	if err == nil {
		k.revision, k.pause = revision, 0
		return revision, nil
	}
	k.pause = min(max(2*k.pause, firstPause), lastPause, max(interval(repo), MinInterval))
	k.retryAt = k.asked.Add(k.pause)
	var own *Error
	if errors.As(err, &own) && own.retryAfter > k.pause {
		k.retryAt = k.asked.Add(own.retryAfter)
	}
	return Revision{}, err
}

// interval of a source.
func interval(repo *v1alpha1.GitRepository) time.Duration {
	if repo.Spec.Interval == nil || repo.Spec.Interval.Duration <= 0 {
		return DefaultInterval
	}
	return repo.Spec.Interval.Duration
}

func (c *Coordinator) dropOldestLocked() {
	oldest, at := "", time.Time{}
	for key, k := range c.known {
		if oldest == "" || k.asked.Before(at) {
			oldest, at = key, k.asked
		}
	}
	delete(c.known, oldest)
}

func (c *Coordinator) lookUp(ctx context.Context, repo *v1alpha1.GitRepository, w wanted) (Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	if err := c.resolving.Acquire(ctx, 1); err != nil {
		return Revision{}, err
	}
	defer c.resolving.Release(1)
	remote, err := c.remote(ctx, repo)
	if err != nil {
		return Revision{}, err
	}
	refs, err := git.Refs(ctx, remote, w.keep)
	if err != nil {
		return Revision{}, err
	}
	now := c.clock.Now()
	if w.commit != "" {
		return Revision{Display: commitPrefix + w.commit, Commit: w.commit, ResolvedAt: now}, nil
	}
	name, commit, err := w.pick(refs)
	if err != nil {
		return Revision{}, err
	}
	return Revision{Display: name + "@" + commitPrefix + commit, Commit: commit, ResolvedAt: now}, nil
}

// Check asks the remote whether the source can be reached and has its ref. For a
// commit it says only that the remote answers.
func (c *Coordinator) Check(ctx context.Context, repo *v1alpha1.GitRepository) (Revision, error) {
	w, err := want(repo.Spec.Ref, "")
	if err != nil {
		return Revision{}, err
	}
	if w.commit == "" {
		return c.Resolve(ctx, repo, "", 0)
	}
	key := resolveKey(repo, w)
	c.mu.Lock()
	_, ok, known := c.answerLocked(c.known[key], 0)
	c.mu.Unlock()
	if ok {
		return Revision{}, known
	}
	return c.resolves.start(c, key, func(ctx context.Context) (Revision, error) { return c.ask(ctx, key, repo, w) }).wait(ctx)
}

// Snapshot gives the tree of a revision: from memory or disk, else fetched.
func (c *Coordinator) Snapshot(ctx context.Context, repo *v1alpha1.GitRepository, revision Revision) (*Snapshot, error) {
	if !git.IsCommit(revision.Commit) {
		return nil, failure(v1alpha1.ReasonInvalid, "%q is no commit", revision.Commit)
	}
	name := identity(repo) + "-" + revision.Commit
	if found := c.cache.get(name); found != nil {
		known(c.metrics.fetches)
		return found, nil
	}
	flight := c.snapshots.start(c, name, func(ctx context.Context) (*Snapshot, error) {
		start := c.clock.Now()
		found, err := c.fetch(ctx, repo, revision.Commit, name)
		err = explain(err)
		c.metrics.fetched(err, c.clock.Since(start))
		if c.ctx.Err() != nil {
			return nil, ErrStopped
		}
		return found, err
	})
	return flight.wait(ctx)
}

func (c *Coordinator) fetch(ctx context.Context, repo *v1alpha1.GitRepository, commit, name string) (found *Snapshot, err error) {
	if err := c.fetching.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.fetching.Release(1)
	if found := c.cache.get(name); found != nil { // fetched while this one waited
		return found, nil
	}
	remote, err := c.remote(ctx, repo)
	if err != nil {
		return nil, err
	}
	temp, err := c.cache.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	fetched, err := c.runFetch(ctx, remote, commit, temp)
	if err != nil {
		return nil, err
	}
	c.metrics.fetchBytes.Add(float64(fetched.TransferBytes))
	return c.cache.put(temp, name)
}
