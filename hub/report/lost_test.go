// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// two signed orders of Releases that are not here.
func (h *hub) two(t *testing.T) (a, b tunnel.Signed, uids []string) {
	t.Helper()
	return h.held(t, "a", 20), h.held(t, "b", 20), []string{"uid-a", "uid-b"}
}

// Whoever writes a Cluster counts what is lost before. Another one may write a later
// count in between.
func TestALateWriteOfAnEarlierCountIsPutRight(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		a, b, uids := h.two(t)
		h.reporter.Compared("c1", uids[:1])
		h.take(t, a)
		pass(time.Second)
		h.mu.Lock()
		h.meanwhile = func() {
			h.reporter.Compared("c1", uids)
			h.take(t, a, b)
			pass(time.Second)
			equal(t, "cluster", "True 2 Releases run there that do not exist here", h.behind(t))
		}
		h.mu.Unlock()
		err := h.reporter.Cluster(t.Context(), keyOf(edge), "c1", func(s *corev1alpha1.ClusterStatus) error { s.AgentVersion = "2"; return nil })
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		equal(t, "cluster", "True 2 Releases run there that do not exist here", h.behind(t))
		h.counted()
		pass(time.Minute)
		equal(t, "further writes", []string(nil), h.counted())
	})
}

// The Release is made anew and runs before the count of what is lost is written.
func TestAReleaseThatRunsBeforeTheCountIsWrittenIsNotCounted(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		a, b, uids := h.two(t)
		h.mu.Lock()
		h.meanwhile = func() {
			key := h.ordered(t, "a")
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("a", 1)})
			r, _ := h.Release(key)
			h.reporter.ReleaseChanged(nil, r)
			pass(time.Second)
		}
		h.mu.Unlock()
		h.reporter.Compared("c1", uids)
		h.take(t, a, b)
		pass(3 * time.Second)
		equal(t, "cluster", "True 1 Releases run there that do not exist here", h.behind(t))
	})
}

func TestWhatDoesNotComeIsToldAlsoWhenASessionBeganAnewMeanwhile(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		a, _, uids := h.two(t)
		h.reporter.Compared("c1", uids)
		pass(heldPatience - time.Second)
		h.reporter.Compared("c1", uids)
		h.take(t, a)
		pass(heldPatience - time.Second)
		equal(t, "while it is waited for", "", h.behind(t))
		pass(2 * time.Second)
		equal(t, "cluster", "True 1 Releases run there that do not exist here; 1 newer orders were not given back", h.behind(t))
	})
}

// Whatever the order of sessions and batches, the count ends as what is held.
func TestBatchesAndSessionsInAnyOrderEndWithTheFullCount(t *testing.T) {
	const n, batch = 40, 8
	for seed := range uint64(50) {
		inside(t, func(t *testing.T, h *hub) {
			random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // an order of steps
			var batches [][]tunnel.Signed
			var uids []string
			for i := range n {
				name := fmt.Sprintf("gone-%02d", i)
				uids = append(uids, "uid-"+name)
				if i%batch == 0 {
					batches = append(batches, nil)
				}
				batches[len(batches)-1] = append(batches[len(batches)-1], h.held(t, name, 20))
			}
			// A session that told a part, and one that gave back a part.
			for range random.IntN(4) {
				h.reporter.Compared("c1", uids[:random.IntN(n+1)])
				for _, i := range random.Perm(len(batches))[:random.IntN(len(batches))] {
					h.take(t, batches[i]...)
					pass(time.Duration(random.Int64N(int64(heldPatience))))
				}
			}
			// The last one, among whose batches is a late one of the one before.
			h.reporter.Compared("c1", uids)
			h.take(t, batches[random.IntN(len(batches))]...)
			for _, i := range random.Perm(len(batches)) {
				h.take(t, batches[i]...)
				pass(time.Duration(random.Int64N(int64(time.Second))))
			}
			pass(time.Second)
			cluster, _ := h.Cluster(keyOf(edge))
			equal(t, fmt.Sprintf("seed %d: counted", seed), int32(n), cluster.Status.UnknownReleaseCount)
		})
	}
}

func TestWhatNobodyAskedForIsNotCounted(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		a, b, uids := h.two(t)
		h.take(t, a)
		pass(time.Minute)
		equal(t, "before a comparison", "", h.behind(t))
		// The agent has let one go; its order was still on its way.
		h.reporter.Compared("c1", uids[1:])
		h.take(t, a, b)
		pass(time.Minute)
		equal(t, "cluster", "True 1 Releases run there that do not exist here", h.behind(t))
	})
}
