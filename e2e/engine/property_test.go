// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/tunnel"
)

// Sequences and steps of the property test; many more with CONVOY_SOAK=1.
const (
	propertySeeds     = 6
	propertySoakSeeds = 200
	propertySteps     = 24
	// propertyTime that a sequence may take, on a machine that is busy.
	propertyTime = 5 * time.Minute
)

// TestWhateverHappensTheClusterEndsAsTheModelSays drives random sequences of renders,
// edits and deletions by others, kills at a random write, restarts, a hub that is away,
// watches that end and old orders that come again, against a model of what must then
// be there. The seeds are fixed: a sequence that fails can be run again by its name.
func TestWhateverHappensTheClusterEndsAsTheModelSays(t *testing.T) {
	t.Parallel()
	seeds := propertySeeds
	if os.Getenv("CONVOY_SOAK") == "1" {
		seeds = propertySoakSeeds
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			p := newProperty(t, uint64(seed))
			for step := range propertySteps {
				p.step(step)
				p.check()
			}
			p.remove()
			p.check()
		})
	}
}

// property is one sequence.
type property struct {
	*model
	b     *bench
	rng   *rand.Rand
	name  string
	last  tunnel.Order
	cut   *cutter
	past  []tunnel.Order
	watch *deletions
}

func newProperty(t *testing.T, seed uint64) *property {
	t.Helper()
	b := newIdleBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), propertyTime)
	t.Cleanup(cancel)
	b.ctx = ctx
	if seed%2 == 1 {
		b.secretState() // kills then hit what the engine writes down, too
	}
	p := &property{
		b: b, rng: rand.New(rand.NewPCG(seed, 1)), name: fmt.Sprintf("property-%d", seed), //nolint:gosec // to be repeated
		cut: &cutter{},
	}
	inner := b.config.WrapTransport
	b.config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return p.cut.around(inner(next)) }
	p.model = newModel(b.namespace(p.name))
	p.watch = watchDeletions(t, b, p.ns)
	b.start()
	p.settle(p.order())
	p.check()
	return p
}

// step does one thing, chosen by chance.
func (p *property) step(n int) {
	p.b.t.Helper()
	steps := []struct {
		name string
		do   func()
	}{
		{"a new render", func() { p.settle(p.order()) }},
		{"two renders, one right after the other", func() { p.order(); p.settle(p.change()) }},
		{"a new render, and somebody meddles", func() { o := p.order(); p.meddle(); p.settle(o) }},
		{"somebody meddles", p.meddle},
		{"somebody deletes", p.delete},
		{"somebody makes an object", p.create},
		{"the engine is down while somebody meddles", p.down},
		{"the engine is killed at a write", p.kill},
		{"the hub is away when a render is ordered", p.away},
		{"all watches end", func() { p.cut.all(); p.meddle() }},
		{"an old order comes again", p.again},
		{"the same render is ordered again", func() { p.settle(p.repeat()) }},
	}
	one := steps[p.rng.IntN(len(steps))]
	p.b.t.Logf("step %d: %s", n, one.name)
	one.do()
}

// order makes a render by chance, tells the model, and has the engine carry it out.
func (p *property) order() tunnel.Order {
	p.b.t.Helper()
	p.draw(p.rng)
	return p.accept(p.b.order(p.name, p.ns, p.render(), forced))
}

// change orders the same objects with other values.
func (p *property) change() tunnel.Order {
	p.b.t.Helper()
	p.redraw(p.rng)
	return p.accept(p.b.order(p.name, p.ns, p.render(), forced))
}

// repeat orders what runs with a new sequence, as a change of the policy does.
func (p *property) repeat() tunnel.Order {
	p.b.t.Helper()
	o := p.last
	o.Sequence = p.b.seq.Add(1)
	return p.accept(o)
}

func (p *property) accept(o tunnel.Order) tunnel.Order {
	p.b.t.Helper()
	p.last = p.b.accept(o)
	p.past = append(p.past, o)
	return o
}

// forced: others' objects of the same names are taken over.
func forced(o *tunnel.Order) { o.Policy.ForceConflicts = true }

func (p *property) settle(o tunnel.Order) { p.b.t.Helper(); p.b.applied(o) }

// meddle changes an object that the render has, or adds a key of its own.
func (p *property) meddle() {
	p.b.t.Helper()
	name := p.pick(p.rng, p.wanted)
	key, value := "k", "meddled"
	if p.rng.IntN(2) == 0 {
		key = "mine"
	}
	if p.somebody(name, key, value) && key == "mine" {
		p.extra[name] = value
	}
}

// delete takes an object away that the render has.
func (p *property) delete() {
	p.b.t.Helper()
	name := p.pick(p.rng, p.wanted)
	p.watch.allow(name)
	p.deleted(name)
	p.erase(name)
}

// create makes an object of a name that is free.
func (p *property) create() {
	p.b.t.Helper()
	if name := p.free(p.rng); name != "" {
		p.make(name, "theirs")
		p.foreign[name] = "theirs"
	}
}

// down: what happens while nobody looks is seen afterwards.
func (p *property) down() {
	p.b.t.Helper()
	p.b.halt()
	p.meddle()
	if p.rng.IntN(2) == 0 {
		p.delete()
	}
	p.b.start()
}

// kill ends the engine at one of the next writes, with the answer lost or the request,
// and starts it again.
func (p *property) kill() {
	p.b.t.Helper()
	n := p.b.calls.writes.Load() + 1 + p.rng.Int64N(12)
	killed := make(chan struct{})
	dead := func(at int64, _ *http.Request) error {
		switch {
		case at < n:
			return nil
		case at == n:
			close(killed)
		}
		return errKilled
	}
	p.b.calls.before.Store(&dead)
	o := p.order()
	p.appliedOr(o, killed)
	p.b.halt()
	p.b.calls.before.Store(nil)
	p.b.restart()
	if p.b.runner.Have()[o.Release.UID] < o.Sequence {
		p.b.accept(o) // as the hub does on connect
	}
	p.settle(o)
}

// appliedOr waits until an order is carried out or the engine is dead.
func (p *property) appliedOr(o tunnel.Order, killed <-chan struct{}) {
	p.b.t.Helper()
	deadline := time.After(patience)
	for {
		p.b.mu.Lock()
		r := p.b.latest[o.Release.UID]
		p.b.mu.Unlock()
		if r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True {
			return
		}
		select {
		case <-p.b.changed:
		case <-killed:
			return
		case <-deadline:
			p.b.t.Fatalf("neither applied nor killed: %+v", r)
		}
	}
}

// away: the order is there, its render is not. What runs is healed meanwhile.
func (p *property) away() {
	p.b.t.Helper()
	p.b.blobs.setAway(true)
	before, ordered := p.model.clone(), p.render()
	o := p.order()
	if p.render() == ordered {
		p.b.blobs.setAway(false)
		p.settle(o) // it is the render that it has
		return
	}
	p.b.report(o.Release.UID, "waits for the render", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status != tunnel.True
	})
	after := p.model
	p.model = before
	p.meddle()
	p.check()
	p.model = after
	for name, value := range before.extra {
		_, stays := after.wanted[name]
		if _, kept := after.foreign[name]; stays || kept {
			after.extra[name] = value
		}
	}
	p.b.blobs.setAway(false)
	p.settle(o)
}

// again: an order that was replaced is refused.
func (p *property) again() {
	p.b.t.Helper()
	old := p.past[p.rng.IntN(len(p.past))]
	if old.Sequence >= p.last.Sequence {
		return
	}
	err := p.b.runner.Accept(old, tunnel.Signed{Type: tunnel.TypeOrder})
	if !errors.Is(err, engine.ErrOlderSequence) {
		p.b.t.Errorf("an old order came again: %v", err)
	}
}

// remove is the end of the Release: what it made goes, all else stays.
func (p *property) remove() {
	p.b.t.Helper()
	p.leave()
	o := p.b.bare(p.name, tunnel.VerbRemove)
	p.b.accept(o)
	p.b.report(o.Release.UID, "done", func(r tunnel.Report) bool { return r.Done })
}
