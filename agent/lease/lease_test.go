// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

var errAway = errors.New("the API server is away")

// memory is a Lease that several stores look at.
type memory struct {
	mu    sync.Mutex
	have  *record
	count int
	calls []time.Time
}

// view is one process's way to it, which can be cut.
type view struct {
	*memory
	mu     sync.Mutex
	cut    bool
	hang   bool // calls are not answered
	unsaid bool // what is written is, and the answer is lost
}

func (v *view) set(cut, hang bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cut, v.hang = cut, hang
}

func (v *view) reach(ctx context.Context) error {
	v.mu.Lock()
	cut, hang := v.cut, v.hang
	v.mu.Unlock()
	switch {
	case hang:
		<-ctx.Done()
		return ctx.Err()
	case cut:
		return errAway
	}
	v.memory.mu.Lock()
	defer v.memory.mu.Unlock()
	v.calls = append(v.calls, time.Now())
	return nil
}

func (v *view) get(ctx context.Context) (record, error) {
	if err := v.reach(ctx); err != nil {
		return record{}, err
	}
	v.memory.mu.Lock()
	defer v.memory.mu.Unlock()
	if v.have == nil {
		return record{}, errNotFound
	}
	return *v.have, nil
}

func (v *view) create(ctx context.Context, s spec) (record, error) {
	if err := v.reach(ctx); err != nil {
		return record{}, err
	}
	v.memory.mu.Lock()
	defer v.memory.mu.Unlock()
	if v.have != nil {
		return record{}, errExists
	}
	return v.putLocked(s), nil
}

func (v *view) update(ctx context.Context, version string, s spec) (record, error) {
	if err := v.reach(ctx); err != nil {
		return record{}, err
	}
	v.memory.mu.Lock()
	defer v.memory.mu.Unlock()
	switch {
	case v.have == nil:
		return record{}, errNotFound
	case v.have.version != version:
		return record{}, errChanged
	}
	out := v.putLocked(s)
	if v.unsaid {
		return record{}, errAway
	}
	return out, nil
}

func (m *memory) putLocked(s spec) record {
	m.count++
	m.have = &record{version: strconv.Itoa(m.count), spec: s}
	return *m.have
}

// stored is the Lease as it is.
func (m *memory) stored() spec {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.have.spec
}

func (m *memory) called() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

func (m *memory) holder() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.have == nil {
		return ""
	}
	return m.have.spec.holder
}

// process is an agent that wants the Lease.
type process struct {
	*view
	elector *Elector
	cancel  context.CancelFunc
	ended   chan error
	mu      sync.Mutex
	works   bool
	began   time.Time
	stopped time.Time
}

func (p *process) working() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.works
}

func start(t *testing.T, m *memory, name string, gone func(string) bool) *process {
	t.Helper()
	p := &process{view: &view{memory: m}, ended: make(chan error, 1)}
	p.elector = newElector(p.view, Options{Holder: name, Gone: gone})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p.cancel = cancel
	go func() {
		p.ended <- p.elector.Hold(ctx, func(ctx context.Context) error {
			p.mu.Lock()
			p.works, p.began = true, time.Now()
			p.mu.Unlock()
			<-ctx.Done()
			p.mu.Lock()
			p.works, p.stopped = false, time.Now()
			p.mu.Unlock()
			return nil
		})
	}()
	return p
}

// kill ends a process as kill -9 does: nothing is given back.
func (p *process) kill() error {
	p.set(true, false)
	p.cancel()
	return <-p.ended
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestOnlyOneOfTwoAgentsWorksAndTheCallsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a := start(t, m, "a", nil)
		pass(time.Second)
		b := start(t, m, "b", nil)
		for range 600 {
			pass(time.Second)
			if !a.working() || b.working() {
				t.Fatalf("after %d s a works %v and b %v", m.called(), a.working(), b.working())
			}
		}
		if n := m.called(); n > 2+2*600/20+2 {
			t.Errorf("%d calls in ten minutes", n)
		}
		if n := m.stored().transitions; n != 0 {
			t.Errorf("%d changes of the holder", n)
		}
		b.cancel()
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		a.cancel()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestTheOtherTakesOverWhenTheLeaseOfAKilledAgentHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a := start(t, m, "a", nil)
		b := start(t, m, "b", nil)
		pass(time.Minute + 7*time.Second)
		if !a.working() {
			a, b = b, a
		}
		last := m.stored().renewed
		if err := a.kill(); err != nil {
			t.Error(err)
		}
		pass(2 * time.Minute)
		if !b.working() {
			t.Fatal("nobody works")
		}
		if d := b.began.Sub(last); d < Duration || d > Duration+RenewEvery {
			t.Errorf("took over %s after the last renewal", d)
		}
		if n := m.stored().transitions; n != 1 {
			t.Errorf("%d changes of the holder, want 1", n)
		}
		b.cancel()
		if err := <-b.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAHolderThatIsCutOffStopsBeforeAnotherStarts(t *testing.T) {
	for name, hang := range map[string]bool{"calls fail": false, "calls hang": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				a := start(t, m, "a", nil)
				pass(33 * time.Second)
				b := start(t, m, "b", nil)
				pass(time.Second)
				a.set(true, hang)
				pass(3 * time.Minute)
				if a.working() || !b.working() {
					t.Fatalf("a works %v and b %v", a.working(), b.working())
				}
				if d := b.began.Sub(a.stopped); d < Margin {
					t.Errorf("the other started %s after it had stopped, want %s at least", d, Margin)
				}
				if err := <-a.ended; !errors.Is(err, ErrLost) {
					t.Errorf("ended with %v", err)
				}
				b.cancel()
				if err := <-b.ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAnAPIServerThatIsAwayForAWhileTakesNothingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a := start(t, m, "a", nil)
		pass(time.Minute + time.Second)
		for range 5 {
			a.set(true, false)
			pass(Duration - Margin - RenewEvery - retryEvery)
			a.set(false, false)
			pass(30 * time.Second)
			if !a.working() {
				t.Fatal("gave up")
			}
		}
		a.cancel()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestALeaseThatWasGivenBackIsTakenAtTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a := start(t, m, "a", nil)
		pass(time.Second)
		b := start(t, m, "b", nil)
		pass(time.Second)
		a.view.mu.Lock()
		a.unsaid = true // the answer to its last renewal is lost
		a.view.mu.Unlock()
		pass(RenewEvery)
		a.view.mu.Lock()
		a.unsaid = false
		a.view.mu.Unlock()
		a.cancel()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
		if m.holder() != "" {
			t.Errorf("%q has it", m.holder())
		}
		pass(RenewEvery)
		if !b.working() {
			t.Error("the other does not work")
		}
		b.cancel()
		if err := <-b.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAProcessThatFindsItsOwnNameOrThatOfOneThatEndedDoesNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		next string
		gone func(string) bool
	}{
		"the container was started anew":  {"a", nil},
		"the process is known to be gone": {"b", func(holder string) bool { return holder == "a" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				a := start(t, m, "a", nil)
				pass(time.Second)
				if err := a.kill(); err != nil {
					t.Error(err)
				}
				b := start(t, m, c.next, c.gone)
				synctest.Wait()
				if !b.working() {
					t.Error("waits")
				}
				b.cancel()
				if err := <-b.ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestSomebodyElsesChangesToTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a := start(t, m, "a", nil)
		pass(time.Second)
		m.mu.Lock()
		m.putLocked(m.have.spec) // a label
		m.mu.Unlock()
		pass(RenewEvery)
		if !a.working() {
			t.Error("a label took the Lease away")
		}
		m.mu.Lock()
		m.have = nil
		m.mu.Unlock()
		pass(2 * RenewEvery)
		if !a.working() || m.holder() != "a" {
			t.Error("a deletion took the Lease away")
		}
		m.mu.Lock()
		taken := m.have.spec
		taken.holder = "somebody"
		m.putLocked(taken)
		m.mu.Unlock()
		pass(RenewEvery)
		if a.working() {
			t.Error("works without the Lease")
		}
		if err := <-a.ended; !errors.Is(err, ErrLost) {
			t.Errorf("ended with %v", err)
		}
		if m.holder() != "somebody" {
			t.Error("what somebody else has was given back")
		}
	})
}

func TestTimesInALeaseAreNotTakenSeriously(t *testing.T) {
	// They are of another machine's clock, which may be in 1970 or in 2099.
	for name, at := range map[string]time.Time{"1970": time.Unix(0, 0), "2099": time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{have: &record{version: "x", spec: spec{holder: "a", duration: 1000 * time.Hour, renewed: at, acquired: at}}}
				b := start(t, m, "b", nil)
				pass(Duration - time.Second)
				if b.working() {
					t.Error("did not wait")
				}
				pass(maxDuration)
				if !b.working() {
					t.Error("waits for ever")
				}
				b.cancel()
				if err := <-b.ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{Config: &rest.Config{Host: "https://localhost:1"}, Namespace: "n", Holder: "h"}); err != nil {
		t.Error(err)
	}
}
