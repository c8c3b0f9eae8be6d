// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestAppliedIsNeverToldWithoutWhatItCounts(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.counted()
		onItsWay := func(r *tunnel.Report) {
			r.Settled = false
			r.Healthy = tunnel.Finding{Status: tunnel.False, Reason: "Progressing", Message: "Deployment team/web"}
			r.Counts = tunnel.Counts{Total: 4, Applied: 4, Healthy: 3}
			r.Exceptions = []tunnel.Exception{{Kind: "Deployment", Namespace: "team", Name: "web", Reason: "Progressing"}}
			r.Operation = &tunnel.Operation{Type: corev1alpha1.OperationSync, Phase: corev1alpha1.PhaseRunning, Sequence: 10}
			r.Hooks = []tunnel.HookRun{{Hook: "migrate", Phase: "PreSync", Run: "10-1", State: "Succeeded"}}
		}
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, onItsWay)})
		// The controller has something to write before the agent's report is due.
		if err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered, SyncRequest: "s"}); err != nil {
			t.Fatal(err)
		}
		r, _ := h.Release(key)
		status := &r.Status
		equal(t, "applied", true, meta.IsStatusConditionTrue(status.Conditions, "Applied"))
		equal(t, "counts", corev1alpha1.ObjectCounts{Total: 4, Applied: 4, Healthy: 3}, status.Objects)
		equal(t, "appliedRef", digest, status.AppliedRef)
		if len(status.Exceptions) != 1 || len(status.Hooks) != 1 || status.LastOperation == nil || len(status.History) != 1 || status.LastReportedAt == nil {
			t.Errorf("status %+v", status)
		}
		equal(t, "writes", []string{"Release web"}, h.counted())

		// Other counts alone are no reason for the controller to write.
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, onItsWay, func(r *tunnel.Report) { r.Counts.Healthy = 2 })})
		if err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered}); err != nil {
			t.Fatal(err)
		}
		equal(t, "writes for counts", []string(nil), h.counted())
	})
}

func TestWhatAnAgentSaidBeforeItWentSilentIsNotToldAgain(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, blocked)})
		pass(time.Minute)
		cluster, _ := h.Cluster(keyOf(edge))
		away := cluster.DeepCopy()
		away.Status.Reachable = false
		h.add("Cluster", away)
		h.reporter.ClusterChanged(cluster, away)
		pass(time.Second)
		healthy := func() string {
			r, _ := h.Release(key)
			c := meta.FindStatusCondition(r.Status.Conditions, "Healthy")
			return string(c.Status) + " " + c.Reason
		}
		equal(t, "when it went silent", "Unknown Disconnected", healthy())
		err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered, SyncRequest: "s"})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "after a write of the controller", "Unknown Disconnected", healthy())
	})
}

// failed is a report of a sync that fails and has not ended, with that object refused.
func failed(object, message string) func(*tunnel.Report) {
	return func(r *tunnel.Report) {
		r.Settled = false
		r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "ApplyFailed", Message: "some are refused"}
		r.Exceptions = []tunnel.Exception{
			{Kind: "ConfigMap", Namespace: "team", Name: object, Reason: "Rejected", Message: message},
			{Kind: "Deployment", Namespace: "team", Name: "of " + message, Reason: "Progressing"},
		}
	}
}

func TestOtherObjectsInTroubleAreToldBeforeAllHasSettledAtMostOnceInFiveSeconds(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.counted()
		named := func() string {
			r, _ := h.Release(key)
			return r.Status.Exceptions[0].Name
		}
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, failed("a", "1"))})
		equal(t, "at first", "a", named())
		pass(noticeApart)
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, failed("b", "1"))})
		equal(t, "the next", "b", named())
		equal(t, "writes", []string{"Release web", "Release web"}, h.counted())

		// Many in a row are one write, of the last of them.
		for i := range 40 {
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(3+i), failed(fmt.Sprint("c", i), "1"))})
			pass(100 * time.Millisecond)
		}
		pass(noticeApart)
		equal(t, "the last", "c39", named())
		if writes := h.counted(); len(writes) > 3 {
			t.Errorf("%d writes for 40 failures within 17 s", len(writes))
		}

		// Other messages, and what is on its way, are no news.
		for i := range 10 {
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(50+i), failed("c39", fmt.Sprint(i)))})
			pass(noticeApart)
		}
		equal(t, "writes of the same trouble", []string(nil), h.counted())
	})
}

func TestWhatIsHeldWhileItIsDeletedStandsInTheInventoryBeforeAllHasSettled(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, withInventory)})
		h.counted()
		held := func(n int) func(*tunnel.Report) {
			return func(r *tunnel.Report) {
				for i := range n {
					r.Inventory = append(r.Inventory, tunnel.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: fmt.Sprint(i), Health: "Terminating"})
				}
			}
		}
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, blocked, held(1))})
		pass(time.Second)
		equal(t, "writes", []string{"Inventory web"}, h.counted())
		for i := range 20 {
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(3+i), blocked, held(2+i))})
			pass(50 * time.Millisecond)
		}
		pass(noticeApart)
		stored, _ := lookup[*corev1alpha1.ReleaseInventory](h, "Inventory", key)
		equal(t, "entries", 21, len(stored.Entries))
		equal(t, "writes of many", []string{"Inventory web"}, h.counted())
		pass(10 * time.Minute)
		equal(t, "writes while it goes on", []string{"Release web"}, h.counted())
	})
}
