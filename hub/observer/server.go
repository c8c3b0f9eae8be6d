// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
)

// Options of a Server.
type Options struct {
	// Listener of the API server's requests, plain HTTP. The Server closes it.
	Listener  net.Listener
	Releases  Releases
	Previewer Previewer
	Check     Check
	// Agents, Inventories and Renders are what health, diff and history are made of.
	Agents      Agents
	Inventories Inventories
	Renders     Renders
	// Clock is the real one by default.
	Clock clock.PassiveClock
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Server answers.
type Server struct {
	Options
	metrics *metrics
	// previews are renders, which take long; questions are about what is known.
	previews, questions *places
}

// New makes a Server. It starts nothing.
func New(o Options) (*Server, error) {
	if o.Listener == nil || o.Releases == nil || o.Previewer == nil || o.Check == nil || o.Agents == nil || o.Inventories == nil || o.Renders == nil {
		return nil, fmt.Errorf("%w: all but clock and registerer are needed", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return &Server{
		Options: o, metrics: m,
		previews:  newPlaces(maxPreviews, maxWaiting, maxPreviewsPerNamespace, maxAskedPerNamespace),
		questions: newPlaces(maxQuestions, maxQuestionsWaiting, maxQuestionsPerNamespace, maxQuestionsAsked),
	}, nil
}

// Run serves until ctx ends, and lets answers that are being made be cut off.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	group.Go(func() error {
		if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the observer: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		return server.Shutdown(draining)
	})
	return group.Wait()
}

// Questions, as they stand in paths and metrics.
const (
	questionPreview = "preview"
	questionHealth  = "health"
	questionDiff    = "diff"
	questionHistory = "history"
)

// Handler routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /preview/{namespace}/{name}", s.answer(questionPreview, s.previewStored))
	mux.HandleFunc("POST /preview/{namespace}/{name}", s.answer(questionPreview, s.previewUnsaved))
	mux.HandleFunc("GET /health/{namespace}/{name}", s.answer(questionHealth, s.health))
	mux.HandleFunc("GET /diff/{namespace}/{name}", s.answer(questionDiff, s.diffStored))
	mux.HandleFunc("POST /diff/{namespace}/{name}", s.answer(questionDiff, s.diffUnsaved))
	mux.HandleFunc("GET /history/{namespace}/{name}", s.answer(questionHistory, s.history))
	return mux
}

// answer checks where a request comes from, carries it out within the limits and
// writes what came of it.
func (s *Server) answer(question string, handle func(context.Context, *request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := s.Clock.Now()
		log := logr.FromContextOrDiscard(r.Context())
		ctx, cancel := context.WithTimeout(r.Context(), previewTime)
		defer cancel()
		in, err := s.read(w, r)
		if errors.Is(err, errUnproven) {
			log.Info("A request to the observer was refused", "from", r.RemoteAddr, "cause", err.Error())
			write(log, w, failure{http.StatusForbidden, "Forbidden", "only the hub's API server is answered here", 0}.status(), http.StatusForbidden)
			return
		}
		var out any
		if err == nil {
			out, err = handle(ctx, in)
		}
		code := http.StatusOK
		if err != nil {
			f, told := judge(err)
			if !told {
				log.Error(err, "An answer failed", "question", question, "release", r.PathValue("namespace")+"/"+r.PathValue("name"))
			}
			out, code = f.status(), int(f.code)
		}
		s.metrics.answered(question, code, s.Clock.Since(start))
		write(log, w, out, code)
	}
}
