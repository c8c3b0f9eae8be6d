// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/local"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/pkg/tunnel"
)

// makeEngines makes those of Clusters without an agent.
func (h *hub) makeEngines(context.Context) error {
	policy := address.Policy{Allow: h.config.ClusterAllow, Deny: serviceRange(os.Getenv("KUBERNETES_SERVICE_HOST"))}
	engines, err := local.New(local.Options{
		HubID: h.keys.HubID, OrderKeys: h.trustedOrderKeys,
		Clusters: h.cache, Status: engineStatus{h}, Secrets: clusterSecrets{h.secrets}, Orders: h.orders, Held: h.reporter,
		Blobs: blobs{h.objects, h.sealed}, Reports: h.reporter, Host: h.config.Host, Dial: dialCluster(policy),
		Resync: h.config.Resync, Registerer: h.registry,
	})
	if err != nil {
		return fmt.Errorf("make the engines: %w", err)
	}
	h.engines, h.agents.engines = engines, engines
	return nil
}

// trustedOrderKeys are those that engines in this process verify orders with.
func (h *hub) trustedOrderKeys() []ed25519.PublicKey {
	keys, err := tunnel.PublicKeys(h.orderKeys())
	if err != nil {
		return nil // the keyring holds none of another length; with none, all is refused
	}
	return keys
}

// dialCluster refuses addresses that lead to the hub itself, its node or its
// Services: who may write a kubeconfig is no administrator of the host.
func dialCluster(policy address.Policy) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, at string) (net.Conn, error) {
		conn, err := policy.Dial(ctx, at, false)
		if errors.Is(err, address.ErrDenied) {
			return nil, fmt.Errorf("%w: %w", local.ErrAddress, err)
		}
		return conn, err
	}
}

// clusterSecrets are the host's Secrets as the engines know them.
type clusterSecrets struct{ from source.SecretGetter }

func (c clusterSecrets) GetSecret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	data, err := c.from.GetSecret(ctx, namespace, name)
	switch {
	case errors.Is(err, source.ErrSecretNotFound):
		return nil, fmt.Errorf("%w: %w", local.ErrNoSecret, err)
	case errors.Is(err, source.ErrNoHostCluster):
		return nil, fmt.Errorf("%w: %w", local.ErrNoHost, err)
	}
	return data, err
}

// engineStatus writes what the engines' room knows of Clusters.
type engineStatus struct{ hub *hub }

func (e engineStatus) Cluster(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(*v1alpha1.ClusterStatus) error) error {
	err := e.hub.reporter.Cluster(ctx, key, uid, mutate)
	if errors.Is(err, report.ErrGone) {
		return nil // its cell is about to be ended
	}
	return err
}

func (e engineStatus) Connected(cluster tunnel.ClusterID) { e.hub.reporter.Connected(cluster) }

func (e engineStatus) Reset(ctx context.Context, cluster tunnel.ClusterID) error {
	return e.hub.reporter.Reset(ctx, cluster)
}
