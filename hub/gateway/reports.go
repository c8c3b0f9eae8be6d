// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// body of a request, which has to keep moving.
func (s *session) body(w http.ResponseWriter, r *http.Request) io.Reader {
	return tunnel.Stall{C: http.NewResponseController(w)}.Reader(r.Body)
}

// enterLarge waits for the turn of a large body: one a session, so that no agent
// takes the places of others. When it is not had, that was answered.
func (s *session) enterLarge(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	limit := time.NewTimer(tunnel.HandshakeTimeout)
	defer limit.Stop()
	for i, place := range []chan struct{}{s.large, s.gw.large} {
		select {
		case place <- struct{}{}:
			continue
		case <-limit.C:
			tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonOverloaded, "too many large bodies at once", RetryEnroll)
		case <-r.Context().Done():
		}
		if i > 0 {
			<-s.large
		}
		return nil, false
	}
	return func() { <-s.gw.large; <-s.large }, true
}

// handleReports hands reports on and answers with those that are safe to forget.
func (s *session) handleReports(w http.ResponseWriter, r *http.Request) {
	g, limit, done := s.gw, int64(tunnel.MaxReportBody), func() {}
	switch {
	case r.ContentLength < 0:
		tunnel.WriteProblem(w, http.StatusLengthRequired, tunnel.ReasonBadRequest, "reports need a Content-Length", 0)
		return
	case r.ContentLength > tunnel.MaxReportBodyLarge:
		tunnel.WriteProblem(w, http.StatusRequestEntityTooLarge, tunnel.ReasonTooLong, "the reports are too long", 0)
		return
	case r.ContentLength > limit:
		// A report with a large inventory: only a few at once.
		var ok bool
		if done, ok = s.enterLarge(w, r); !ok {
			return
		}
		limit = tunnel.MaxReportBodyLarge
	}
	var req tunnel.ReportsRequest
	err := tunnel.DecodeJSON(s.body(w, r), limit, &req)
	done() // before anything is answered, which the agent may not read
	if err != nil {
		g.metrics.reports.WithLabelValues("unreadable").Inc()
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "the reports could not be read", 0)
		return
	}
	answer := g.opts.Reports.Observe(r.Context(), s.id, req.Reports)
	g.metrics.reports.WithLabelValues("taken").Add(float64(len(answer.Taken)))
	if n := len(answer.Refused); n > 0 {
		g.metrics.reports.WithLabelValues("refused").Add(float64(n))
		g.log.Info("reports refused", "cluster", s.id.String(), "count", n)
	}
	tunnel.WriteJSON(w, answer)
}

// handleRenew gives the next certificate to the identity of the session. Of the
// request only the key is looked at.
func (s *session) handleRenew(w http.ResponseWriter, r *http.Request) {
	g := s.gw
	var req tunnel.RenewRequest
	if err := tunnel.DecodeJSON(s.body(w, r), tunnel.MaxJoinBody, &req); err != nil {
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "the renewal could not be read", 0)
		return
	}
	s.mu.Lock()
	early := time.Since(s.renewed) < g.opts.RenewGap
	if !early {
		s.renewed = time.Now()
	}
	s.mu.Unlock()
	if early || !g.enroll.Allow() {
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonOverloaded, "too many renewals", RetryEnroll)
		return
	}
	answer, err := g.issue(r.Context(), s.identity, req.ClientKey, func(status *v1alpha1.ClusterStatus, _ time.Time) error {
		if refused := accepts(status.Agent, s.identity); refused != nil {
			return refused
		}
		return nil
	})
	if refused := asRefusal(err); refused != nil {
		if refused.Reason == tunnel.ReasonCloneDetected {
			g.refuseSession(s, refused) // it hears why; other sessions of the identity end
		}
		g.settle(r.Context(), s.identity, refused)
	}
	g.answerCertificate(w, "renew", s.id.UID, answer, err)
}
