// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/observer"
)

// watched is the observer's listener, which is there before the observer is: the API
// server has to know its address.
type watched struct {
	listener net.Listener
	server   *observer.Server
	made     chan struct{}
}

// listenObserver opens the listener. Requests wait in it until makeObserver.
func (h *hub) listenObserver(ctx context.Context) error {
	if h.config.Observer.Addr == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.config.Observer.Addr)
	if err != nil {
		return fmt.Errorf("listen for the observer: %w", err)
	}
	if h.config.Observer.Own {
		h.config.Observer.URL = "http://" + listener.Addr().String()
	}
	w := &watched{listener: listener, made: make(chan struct{})}
	h.observer = w
	h.life.start(called("observer", func(ctx context.Context) error {
		select {
		case <-w.made:
			return w.server.Run(ctx)
		case <-ctx.Done():
			return listener.Close()
		}
	}))
	return nil
}

// makeObserver answers what waits in the listener.
func (h *hub) makeObserver() error {
	if h.observer == nil {
		return nil
	}
	prover := h.keys.Prover()
	server, err := observer.New(observer.Options{
		Listener: h.observer.listener, Releases: h.cache, Previewer: previewer{}, Registerer: h.registry,
		Check: func(r *http.Request, body []byte) error { return prover.Check(r, body, time.Now()) },
	})
	if err != nil {
		return fmt.Errorf("make the observer: %w", err)
	}
	h.observer.server = server
	close(h.observer.made)
	return nil
}

// proveToObserver signs what the API server asks.
func (h *hub) proveToObserver() func(r *http.Request, body []byte) {
	prover := h.keys.Prover()
	return func(r *http.Request, body []byte) { prover.Sign(r, body, time.Now()) }
}

// previewer makes renders without a trace.
type previewer struct{}

func (previewer) Preview(context.Context, *v1alpha1.Release, string) (observer.Result, error) {
	return observer.Result{}, fmt.Errorf("preview of a Release %w", observer.ErrNotBuilt)
}
