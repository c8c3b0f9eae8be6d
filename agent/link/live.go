// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"net/http"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/pkg/tunnel"
)

// serveLive answers how the objects of a Release are, line by line as they come. An
// answer that fails in the middle has no end, so that it cannot be taken for whole.
func (l *Link) serveLive(w http.ResponseWriter, r *http.Request) {
	view := tunnel.LiveView(r.URL.Query().Get("view"))
	if l.opts.Inspector == nil {
		tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNotFound, "this agent does not serve that", 0)
		return
	}
	if !view.Valid() {
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "the view is health or diff", 0)
		return
	}
	out := tunnel.Stall{C: http.NewResponseController(w)}.Writer(w)
	begun := false
	line := func(line tunnel.LiveLine) error {
		if !begun {
			w.Header().Set("Content-Type", "application/jsonl")
			begun = true
		}
		return tunnel.WriteLiveLine(out, line) //nolint:wrapcheck // says what it is
	}
	end, err := l.opts.Inspector.Live(r.Context(), r.PathValue("uid"), view, func(o tunnel.LiveObject) error {
		return line(tunnel.LiveLine{Object: &o})
	})
	if err == nil {
		err = line(tunnel.LiveLine{End: &end})
	}
	switch {
	case err == nil:
	case begun:
		// What was sent has no end, which the hub sees.
		logr.FromContextOrDiscard(r.Context()).V(1).Info("live detail was cut off", "release", r.PathValue("uid"), "error", err.Error())
	case errors.Is(err, tunnel.ErrNoRelease):
		tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNoRelease, "this agent knows no such Release", 0)
	default:
		tunnel.WriteProblem(w, http.StatusInternalServerError, tunnel.ReasonInternal, "the objects could not be looked at", 0)
	}
}
