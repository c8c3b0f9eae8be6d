// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"slices"
	"time"
)

// turn is an answer that is being made. While nobody waits it may take the time of its
// request; when somebody does it is over after fairTime, so that charts without an end
// of two namespaces do not keep a third one from its answer.
type turn struct {
	end  context.CancelCauseFunc
	over bool // it has had its time
}

// begin counts one that has its place. It ends with the function that it gives.
func (p *places) begin(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	t := &turn{end: end}
	p.mu.Lock()
	p.turns = append(p.turns, t)
	p.mu.Unlock()
	timer := time.AfterFunc(fairTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.over = true
		p.makeRoomLocked()
	})
	return ctx, func() {
		timer.Stop()
		end(nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turns = slices.DeleteFunc(p.turns, func(other *turn) bool { return other == t })
	}
}

// want counts those that wait for a place: more of them by n.
func (p *places) want(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted += n
	p.makeRoomLocked()
}

// makeRoomLocked ends the oldest turns that are over, as many as are waited for.
func (p *places) makeRoomLocked() {
	for _, t := range p.turns[:min(p.wanted, len(p.turns))] {
		if t.over {
			t.end(ErrTurn)
		}
	}
}
