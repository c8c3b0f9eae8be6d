// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller/release"
	sourcecontroller "kumodo.io/convoy/hub/controller/source"
	"kumodo.io/convoy/hub/source/webhook"
)

// startWebhooks listens for what sources tell, where that is asked for.
func (h *hub) startWebhooks(reconcilers map[string]*sourcecontroller.Reconciler, releases *release.Reconciler) error {
	if h.config.WebhookAddr == "" {
		return nil
	}
	handler, err := webhook.New(webhook.Options{
		Sources: h.cache, Secrets: h.secrets, Registerer: h.registry,
		Told: func(source v1alpha1.Source) {
			key := types.NamespacedName{Namespace: source.GetNamespace(), Name: source.GetName()}
			h.sources.Forget(source)
			reconcilers[source.SourceKind()].Told(key)
			for _, wants := range h.cache.ReleasesBySource(source.SourceKind(), key) {
				releases.Add(types.NamespacedName{Namespace: wants.Namespace, Name: wants.Name})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("make the handler of webhooks: %w", err)
	}
	h.life.start("webhook", func(ctx context.Context) error { return serveWebhooks(ctx, h.config.WebhookAddr, handler.Mux()) })
	return nil
}

func serveWebhooks(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for webhooks: %w", err)
	}
	logr.FromContextOrDiscard(ctx).Info("The hub hears webhooks", "address", listener.Addr().String())
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: webhook.ReadTimeout, WriteTimeout: webhook.ReadTimeout,
		MaxHeaderBytes: webhook.MaxHeaderBytes, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve webhooks: %w", err)
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
