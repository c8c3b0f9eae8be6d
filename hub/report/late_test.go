// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestAReportThatIsWrittenAfterItsClusterIsGoneIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(t *testing.T, h *hub)
		want string
	}{
		"deleted": {func(_ *testing.T, h *hub) { h.remove("Cluster", "edge") }, "Unknown ClusterNotReady"},
		"away": {func(t *testing.T, h *hub) {
			t.Helper()
			if err := h.reporter.Cluster(t.Context(), keyOf(edge), "c1", func(s *corev1alpha1.ClusterStatus) error { s.Reachable = false; return nil }); err != nil {
				t.Fatal(err)
			}
		}, "Unknown Disconnected"},
	} {
		t.Run(name, func(t *testing.T) {
			inside(t, func(t *testing.T, h *hub) {
				key := h.ordered(t, "web")
				h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
				old, _ := h.Cluster(keyOf(edge))
				// The agent reports a drift, and before that is written the cluster is gone. The
				// sweep comes first.
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					drifted := func(r *tunnel.Report) { r.InSync = tunnel.Finding{Status: tunnel.False, Reason: "Drifted"} }
					h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, drifted)})
				}()
				pass(time.Millisecond)
				c.lose(t, h)
				next, ok := h.Cluster(keyOf(edge))
				if !ok {
					next = nil
				}
				h.reporter.ClusterChanged(old, next)
				<-answered
				pass(time.Second)
				equal(t, "state", c.want, ready(t, h, key))
			})
		})
	}
}
