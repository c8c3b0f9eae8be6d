// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/fault"
)

// knowledge of one question to one source.
type knowledge struct {
	revision Revision
	// index is what the source was last seen at before this answer was asked for.
	index  string
	failed error // of the newest attempt; nil after a success
	pause  time.Duration
	// retryAt is when it may be asked again after a failure.
	retryAt time.Time
	asked   time.Time
	// silent counts the times in a row that there was no answer in time.
	silent int
}

// patience with a remote that was silent so often.
func patience(silent int) time.Duration {
	if silent%fullEvery == 0 {
		return resolveTimeout
	}
	return silentTimeout
}

// Resolve says what is wanted of a source leads to. An answer younger than maxAge is
// given from memory; maxAge 0 asks the remote.
//
// After a failure the remote is left alone for a while that grows with each one,
// up to a minute (or as long as the server asked for); meanwhile the same error
// is given, except with maxAge 0. The context bounds how long the caller waits,
// not how long the remote is waited for.
func (c *Coordinator) Resolve(ctx context.Context, w Want, maxAge time.Duration) (Revision, error) {
	q, err := c.read(w)
	if err != nil {
		return Revision{}, explain(err)
	}
	if q.known != nil {
		revision := *q.known
		revision.ResolvedAt = c.clock.Now()
		return revision, nil
	}
	return c.resolve(ctx, w.Object, q, maxAge)
}

// Check asks the remote whether the source can be used: whether it answers and has
// its ref.
func (c *Coordinator) Check(ctx context.Context, o v1alpha1.Source) (Revision, error) {
	q, err := c.read(Want{Object: o})
	if err != nil {
		return Revision{}, explain(err)
	}
	return c.resolve(ctx, o, q, 0)
}

func (c *Coordinator) resolve(ctx context.Context, o v1alpha1.Source, q question, maxAge time.Duration) (Revision, error) {
	key := resolveKey(o, q.text)
	c.mu.Lock()
	k := c.known[key]
	revision, ok, err := c.answerLocked(k, maxAge)
	if !ok && q.index {
		revision, ok = c.sameIndexLocked(o, k, maxAge)
	}
	var last error
	if k != nil && maxAge > 0 {
		last = k.failed
	}
	// What a source told begins a new flight: one that is under way may have been
	// answered before.
	told := c.told[identity(o)]
	c.mu.Unlock()
	if ok {
		known(c.metrics.resolves)
		return revision, err
	}
	flight := c.resolves.start(c, key+"\x00"+strconv.FormatUint(told, 10), func(ctx context.Context) (Revision, error) {
		return c.ask(ctx, key, o, q, told)
	})
	if !flight.first && last != nil {
		// The remote failed the last time and somebody is asking it again: one waits
		// for it, the others need not.
		return Revision{}, last
	}
	return flight.wait(ctx)
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

// indexLocked is what a source was last seen at by a check, and when.
func (c *Coordinator) indexLocked(o v1alpha1.Source) (index string, at time.Time) {
	k := c.known[resolveKey(o, checkText)]
	if k == nil || k.failed != nil {
		return "", time.Time{}
	}
	return k.revision.Key, k.revision.ResolvedAt
}

// sameIndexLocked gives an older answer as long as the index that it came from is the
// one that a fresh check saw: one download of it serves all who want a chart of it.
func (c *Coordinator) sameIndexLocked(o v1alpha1.Source, k *knowledge, maxAge time.Duration) (Revision, bool) {
	if k == nil || k.failed != nil || k.index == "" || maxAge <= 0 {
		return Revision{}, false
	}
	index, at := c.indexLocked(o)
	if index != k.index || c.clock.Since(at) >= maxAge {
		return Revision{}, false
	}
	k.asked = c.clock.Now()
	return k.revision, true
}

// ask looks a question up at the remote and remembers the answer.
func (c *Coordinator) ask(ctx context.Context, key string, o v1alpha1.Source, q question, told uint64) (Revision, error) {
	start := c.clock.Now()
	c.mu.Lock()
	index, _ := c.indexLocked(o)
	silent := 0
	if k := c.known[key]; k != nil {
		silent = k.silent
	}
	c.mu.Unlock()
	revision, err := c.lookUp(ctx, o, q, patience(silent))
	isSilent := fault.ClassOf(err) == fault.ClassTimeout
	err = explain(err)
	c.metrics.resolved(err, c.clock.Since(start))
	if c.ctx.Err() != nil {
		return Revision{}, ErrStopped
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[identity(o)] != told {
		// The source told of a change meanwhile: whether before or after this answer,
		// nobody knows. It is given to those who waited, and not remembered.
		return revision, err
	}
	k := c.known[key]
	if k == nil {
		if len(c.known) >= maxKnown {
			c.dropOldestLocked()
		}
		k = &knowledge{}
		c.known[key] = k
	}
	k.failed, k.asked, k.silent = err, c.clock.Now(), 0
	if isSilent {
		k.silent = silent + 1
	}
	if err == nil {
		k.revision, k.index, k.pause = revision, index, 0
		return revision, nil
	}
	k.pause = min(max(2*k.pause, firstPause), lastPause, max(o.SourceInterval(), MinInterval))
	k.retryAt = k.asked.Add(k.pause)
	var own *Error
	if errors.As(err, &own) && own.retryAfter > k.pause {
		k.retryAt = k.asked.Add(own.retryAfter)
	}
	return Revision{}, err
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

// lookUp asks the remote, when there is room.
func (c *Coordinator) lookUp(ctx context.Context, o v1alpha1.Source, q question, most time.Duration) (revision Revision, err error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	disembark, err := c.tenants.enter(ctx, o.GetNamespace(), visitLook)
	if err != nil {
		return Revision{}, err
	}
	defer disembark()
	leave, err := c.hosts.enter(ctx, q.origin, identity(o), visitLook)
	if err != nil {
		return Revision{}, err
	}
	defer func() { leave(err) }()
	if err := c.resolving.Acquire(ctx, 1); err != nil {
		return Revision{}, err
	}
	defer c.resolving.Release(1)
	// Who was silent the last time is not waited for as long again.
	ctx, cancel = context.WithTimeout(ctx, most)
	defer cancel()
	if revision, err = q.ask(ctx); err != nil {
		return Revision{}, err
	}
	revision.ResolvedAt = c.clock.Now()
	return revision, nil
}

// Forget drops what is known of a source's refs, because it told that they changed:
// whoever wants one next has the remote asked. What it is left alone for stays.
func (c *Coordinator) Forget(o v1alpha1.Source) {
	id := identity(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.told) >= maxKnown {
		clear(c.told) // those under way are asked once more
	}
	c.told[id]++
	for key, k := range c.known {
		if strings.HasPrefix(key, id+"\x00") && k.failed == nil {
			delete(c.known, key)
		}
	}
}
