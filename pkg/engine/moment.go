// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kumodo.io/convoy/pkg/tunnel"
)

// clockStep is by how much the hub's clock has to differ from what it was taken for
// before the times that are told move.
const clockStep = 2 * time.Second

// moments turn times of this run, which are compared and counted by a clock that
// does not jump, into times by the hub's clock, for reports and records: whoever
// reads them has no use for a clock that is two hours wrong.
type moments struct {
	clock   clock.PassiveClock
	hubTime func() time.Time
	anchor  time.Time // of this run

	mu     sync.Mutex
	at     time.Time // the anchor by the hub's clock; guarded by mu
	newest int64     // the last number that next gave; guarded by mu
}

func newMoments(c clock.PassiveClock, hubTime func() time.Time) *moments {
	return &moments{clock: c, hubTime: hubTime, anchor: c.Now()}
}

// told is a time of this run by the hub's clock. One that was read back from a
// record is that already.
func (m *moments) told(t time.Time) time.Time {
	if t.IsZero() || (!steady(t) && steady(m.anchor)) {
		return t
	}
	at := m.hubTime().Round(0).Add(-m.clock.Now().Sub(m.anchor))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || at.Sub(m.at).Abs() > clockStep {
		m.at = at
	}
	return m.at.Add(t.Sub(m.anchor)).UTC()
}

// operation is a copy with times by the hub's clock; nil stays nil.
func (m *moments) operation(op *tunnel.Operation) *tunnel.Operation {
	if op == nil {
		return nil
	}
	out := *op
	out.StartedAt = m.told(op.StartedAt)
	for _, t := range []**time.Time{&out.FinishedAt, &out.Deadline} {
		if *t != nil {
			told := m.told(**t)
			*t = &told
		}
	}
	return &out
}

// next is a number that grows, also when the clock jumps back: by the hub's clock
// or ours, whichever is ahead.
func (m *moments) next() int64 {
	now := max(m.hubTime().UnixMilli(), m.clock.Now().UnixMilli())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = max(m.newest+1, now)
	return m.newest
}

// steady tells whether a time has a reading of the clock that does not jump, which
// one that was read back from somewhere has not.
func steady(t time.Time) bool {
	return t != t.Round(0) //nolint:revive // Equal does not look at that reading
}
