// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// soaked skips a test that takes minutes, and gives the others of a bench that time.
func soaked(t *testing.T) *bench {
	t.Helper()
	if os.Getenv("CONVOY_SOAK") == "" {
		t.Skip("takes minutes: CONVOY_SOAK=1 runs it")
	}
	b := newIdleBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	b.ctx = ctx
	b.secretState()
	b.start()
	return b
}

// patiently waits for an order longer than a test does otherwise.
func (b *bench) patiently(o tunnel.Order, what string, want func(tunnel.Report) bool) tunnel.Report {
	b.t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		b.mu.Lock()
		r := b.latest[o.Release.UID]
		b.mu.Unlock()
		if r.Sequence == o.Sequence && want(r) {
			return r
		}
		select {
		case <-b.changed:
		case <-deadline:
			r.Inventory = nil
			b.t.Fatalf("never %s: %+v", what, r)
		}
	}
}

func carriedOut(r tunnel.Report) bool {
	return r.Settled && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True && r.Healthy.Status == tunnel.True
}

func TestAReleaseOfTenThousandObjectsIsAppliedChangedPrunedAndRemoved(t *testing.T) {
	b := soaked(t)
	const objects = 10000
	ns := b.namespace("soak-many")
	render := func(from, to int, value string) string {
		var out strings.Builder
		for i := from; i < to; i++ {
			out.WriteString(configMap(ns, fmt.Sprintf("c-%05d", i), "k", value))
		}
		return out.String()
	}
	long := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 600 }
	step := func(what string, o tunnel.Order, want func(tunnel.Report) bool) tunnel.Report {
		start, calls := time.Now(), b.calls.n.Load()
		b.accept(o)
		r := b.patiently(o, what, want)
		t.Logf("%s: %s, %d calls", what, time.Since(start).Round(100*time.Millisecond), b.calls.n.Load()-calls)
		return r
	}
	r := step("applied", b.order("many", ns, render(0, objects, "v"), long), carriedOut)
	if r.Counts.Total != objects || len(r.Inventory) != objects {
		t.Errorf("counts %+v, inventory of %d", r.Counts, len(r.Inventory))
	}
	step("unchanged", b.order("many", ns, render(0, objects, "v"), long), carriedOut)
	step("one changed", b.order("many", ns, render(0, objects-1, "v")+configMap(ns, fmt.Sprintf("c-%05d", objects-1), "k", "v2"), long), carriedOut)
	b.edit(configmaps, ns, "c-07777", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "c-07777", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	held := step("held", b.order("many", ns, render(0, 100, "v"), long), func(r tunnel.Report) bool { return r.Held != nil && r.Settled })
	step("pruned", b.order("many", ns, render(0, 100, "v"), long, func(o *tunnel.Order) {
		o.Policy.Confirmed, o.Policy.ConfirmedUntil = held.Held.Digest, time.Now().Add(time.Hour)
	}), carriedOut)
	if n := b.count(ns); n != 100 {
		t.Errorf("%d objects are left", n)
	}
	step("removed", b.bare("many", tunnel.VerbRemove, long), func(r tunnel.Report) bool { return r.Done })
}

func TestARenderOfFiftyMegabytesIsAppliedWholeAndAnotherTakesItsPlace(t *testing.T) {
	b := soaked(t)
	const objects, size = 500, 100000
	ns := b.namespace("soak-large")
	render := func(changed string) []manifest.Object {
		var out []manifest.Object
		for i := range objects {
			value := strings.Repeat(string(rune('a'+i%26)), size)
			if i == objects/2 {
				value = changed + value
			}
			parsed, err := manifest.Parse("test.yaml", []byte(configMap(ns, fmt.Sprintf("c-%03d", i), "blob", value)))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, parsed...)
		}
		return out
	}
	long := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 600 }
	for _, changed := range []string{"", "changed"} {
		start, calls := time.Now(), b.calls.n.Load()
		o := b.accept(b.orderOf("large", ns, render(changed), long))
		b.patiently(o, "applied", carriedOut)
		t.Logf("%d MB: %s, %d calls", o.Objects.Size>>20, time.Since(start).Round(100*time.Millisecond), b.calls.n.Load()-calls)
	}
	for i := range objects {
		want := size
		if i == objects/2 {
			want += len("changed")
		}
		if got := len(data(b.get(configmaps, ns, fmt.Sprintf("c-%03d", i)), "blob")); got != want {
			t.Errorf("object %d has %d bytes, want %d", i, got, want)
		}
	}
}
