// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Options of a Trimmer; none is required.
type Options struct {
	Clock      clock.WithTicker
	Registerer prometheus.Registerer
	// Work is how many bytes a process has to have allocated since the last trim. 0: a trim
	// has to promise MinGain instead, which leaves out what Idle lets go, and what is free
	// between objects: in a small process that is the most.
	Work uint64
	// Idle is called before each: what is only kept to be used again is let go there.
	Idle func()
	// Read looks at the process, Free collects and gives back. Default: the runtime's.
	Read func() Usage
	Free func()
}

// Usage of the process's heap, in bytes.
type Usage struct {
	// Live was found by the last collection.
	Live uint64
	// Allocated since the start.
	Allocated uint64
	// Spare is what a collection could give back: garbage, as far as is known, and
	// what is free and was not given back.
	Spare uint64
}

// Trimmer of one process. See Run.
type Trimmer struct {
	options  Options
	counters *counters
}

// New makes a Trimmer. It starts nothing.
func New(options Options) *Trimmer {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Idle == nil {
		options.Idle = func() {}
	}
	if options.Read == nil {
		options.Read = read
	}
	if options.Free == nil {
		options.Free = free
	}
	return &Trimmer{options: options, counters: newCounters(options.Registerer)}
}

// Run looks at the process each Interval until ctx ends.
func (t *Trimmer) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx).WithName("trim")
	tick := t.options.Clock.NewTicker(Interval)
	defer tick.Stop()
	before := t.options.Read()
	last, trimmed := time.Time{}, uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
		now := t.options.Read()
		if t.due(before, now, trimmed) && t.options.Clock.Since(last) >= Gap {
			last = t.options.Clock.Now()
			t.options.Idle()
			t.options.Free()
			t.counters.trims.Inc()
			t.counters.freed.Add(float64(now.Spare))
			log.V(1).Info("gave memory back", "live", now.Live, "spare", now.Spare)
			now = t.options.Read()
			trimmed = now.Allocated
		}
		before = now
	}
}

// due tells whether a trim is worth its price: little was allocated between two
// looks, and there is enough to give back. trimmed is what was allocated until the last.
func (t *Trimmer) due(before, now Usage, trimmed uint64) bool {
	if now.Allocated-before.Allocated > max(calmFloor, now.Live/calm) {
		return false
	}
	if t.options.Work > 0 {
		return now.Allocated-trimmed >= t.options.Work
	}
	return now.Spare >= max(MinGain, now.Live/gain)
}

// free collects twice: pools let go of what they keep with the second collection.
func free() {
	runtime.GC()
	debug.FreeOSMemory()
}

func read() Usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	bytes := make([]uint64, len(samples))
	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindUint64 { // else a runtime that does not know it
			bytes[i] = samples[i].Value.Uint64()
		}
	}
	garbage := max(bytes[2], bytes[0]) - bytes[0]
	return Usage{Live: bytes[0], Allocated: bytes[1], Spare: garbage + bytes[3]}
}
