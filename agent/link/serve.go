// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net/http"

	"kumodo.io/convoy/pkg/tunnel"
)

// routes are what the hub may ask. There is no way to reach anything else here:
// no address is ever dialled for it.
func (l *Link) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ping", func(w http.ResponseWriter, _ *http.Request) {
		tunnel.WriteJSON(w, struct{}{})
	})
	mux.HandleFunc("GET /v1/releases/{uid}", func(w http.ResponseWriter, r *http.Request) {
		report, ok := l.opts.Reporting.Newest(r.PathValue("uid"))
		if !ok {
			tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNotFound, "this agent knows no such Release", 0)
			return
		}
		tunnel.WriteJSON(w, report)
	})
	mux.HandleFunc("GET /v1/live/{uid}", l.serveLive)
	mux.HandleFunc("GET /v1/blobs/{digest}", l.serveLayer)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNotFound, "this agent does not serve that", 0)
	})
	return mux
}
