// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"kumodo.io/convoy/pkg/tunnel"
)

// handleHeld takes orders that the agent gives back, since the hub does not have
// them (any more). Whoever takes them believes the hub's own signature only.
func (s *session) handleHeld(w http.ResponseWriter, r *http.Request) {
	g := s.gw
	// What a restored hub asks of many at once may be large: only a few at a time.
	done, ok := s.enterLarge(w, r)
	if !ok {
		return
	}
	var req tunnel.HeldRequest
	err := tunnel.DecodeJSON(s.body(w, r), tunnel.MaxHeldBody, &req)
	done() // before anything is answered, which the agent may not read
	if err != nil || len(req.Orders) > tunnel.MaxHeld {
		g.metrics.held.WithLabelValues("unreadable").Inc()
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "the orders that are held could not be read, or are too many", 0)
		return
	}
	if err := g.opts.Held.Take(r.Context(), s.id, req.Orders); err != nil {
		g.metrics.held.WithLabelValues("failed").Add(float64(len(req.Orders)))
		g.log.Error(err, "orders that an agent holds could not be taken", "cluster", s.id.String())
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonInternal, "the hub could not record the orders", RetryEnroll)
		return
	}
	g.metrics.held.WithLabelValues("taken").Add(float64(len(req.Orders)))
	tunnel.WriteJSON(w, struct{}{})
}
