// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/local"
	"kumodo.io/convoy/hub/observer"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
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
func (h *hub) makeObserver(releases *release.Reconciler) error {
	if h.observer == nil {
		return nil
	}
	prover := h.keys.Prover()
	server, err := observer.New(observer.Options{
		Listener: h.observer.listener, Releases: h.cache, Previewer: previewer{releases, h.objects}, Registerer: h.registry,
		Agents: h.agents, Inventories: h.server.Storage().Inventories, Renders: renders{h.objects},
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

// renders are opened for the observer.
type renders struct{ objects store.Store }

func (r renders) Open(ctx context.Context, digest string) (io.ReadCloser, error) {
	blob, _, err := r.objects.Open(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", observer.ErrNoRender, digest)
	}
	return blob, err
}

// Live asks whoever is in the Cluster.
func (a *agents) Live(ctx context.Context, clusterUID, releaseUID string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	ask := a.gateway.Sessions().Live
	if a.engines.Served(clusterUID) {
		ask = a.engines.Live
	}
	end, err := ask(ctx, clusterUID, releaseUID, view, yield)
	if errors.Is(err, gateway.ErrAway) || errors.Is(err, local.ErrNotServed) {
		err = fmt.Errorf("%w: %w", observer.ErrAway, err)
	}
	return end, err
}

// previewer makes renders that nothing refers to.
type previewer struct {
	releases *release.Reconciler
	objects  store.Store
}

func (p previewer) Preview(ctx context.Context, object *v1alpha1.Release, revision string) (observer.Result, error) {
	made, err := p.releases.Preview(ctx, object, revision)
	if err != nil {
		return observer.Result{}, err
	}
	result := observer.Result{
		Digest: made.Objects.Digest, SourceRevision: made.SourceRevision, TargetNamespace: made.TargetNamespace,
		Provenance: made.Provenance, Reads: made.Reads, Warnings: made.Warnings, Hooks: made.Hooks,
	}
	blob, _, err := p.objects.Open(ctx, made.Objects.Digest)
	if err != nil {
		return observer.Result{}, fmt.Errorf("open the render: %w", err)
	}
	reader, err := manifest.NewReader(blob, nil)
	if err != nil {
		return observer.Result{}, errors.Join(err, blob.Close())
	}
	for size := 0; ; {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return result, blob.Close()
		}
		if err != nil {
			return observer.Result{}, errors.Join(err, blob.Close())
		}
		result.Objects = append(result.Objects, bytes.Clone(entry.Raw))
		if size += len(entry.Raw); size > observer.MaxAnswer {
			return result, blob.Close() // more than is told: refused where it is counted
		}
	}
}
