// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/cache"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/local"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/tunnel"
)

// blobs opens a layer in the store that it lies in.
type blobs struct{ objects, sealed store.Store }

func (b blobs) Open(ctx context.Context, digest string, sealed bool) (io.ReadCloser, int64, error) {
	if sealed {
		return b.sealed.Open(ctx, digest)
	}
	return b.objects.Open(ctx, digest)
}

// clusters are the gateway's view of the Clusters.
type clusters struct {
	cache    *cache.Cache
	reporter *report.Reporter
}

func (c clusters) ByUID(uid string) (*v1alpha1.Cluster, bool) {
	return c.cache.ClusterByUID(types.UID(uid))
}

func (c clusters) Update(ctx context.Context, id tunnel.ClusterID, mutate func(*v1alpha1.ClusterStatus) error) error {
	return c.reporter.Cluster(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, types.UID(id.UID), mutate)
}

func (c clusters) Reachable() []tunnel.ClusterID {
	var out []tunnel.ClusterID
	for _, cluster := range c.cache.Clusters() {
		if cluster.Status.Reachable && !local.Mine(cluster) {
			out = append(out, tunnel.ClusterID{Namespace: cluster.Namespace, Name: cluster.Name, UID: string(cluster.UID)})
		}
	}
	return out
}

func (c clusters) None() bool { return len(c.cache.Clusters()) == 0 }

// agents asks over the sessions, and the engines of this process. Both are there
// once they are made.
type agents struct {
	gateway *gateway.Gateway
	engines *local.Manager
}

func (a *agents) Newest(ctx context.Context, cluster tunnel.ClusterID, release types.UID) (_ *tunnel.Report, err error) {
	if a.engines.Served(cluster.UID) {
		return a.engines.Newest(ctx, cluster, release)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/releases/"+url.PathEscape(string(release)), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for a Release: %w", err)
	}
	answer, err := a.gateway.Sessions().Call(cluster.UID, request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, nil // the agent knows nothing of it, which is no error
	default:
		return nil, fmt.Errorf("the agent of %s answered %s", cluster, answer.Status) // for the log only
	}
	var newest tunnel.Report
	if err := tunnel.DecodeJSON(answer.Body, tunnel.MaxAnswerBody, &newest); err != nil {
		return nil, fmt.Errorf("the agent of %s: %w", cluster, err)
	}
	return &newest, nil
}

// waitForAgents is the drain timeout as the gateway takes it, where 0 means its default.
func waitForAgents(configured time.Duration) time.Duration {
	if configured == 0 {
		return -1
	}
	return configured
}

// gatewayNames are what the gateway's certificate outside the websocket is for:
// the Service, this machine, and whatever agents are told to dial.
func gatewayNames(addr, dialled string) []string {
	names := []string{"convoy-gateway.convoy-system.svc", "localhost", "127.0.0.1", "::1"}
	add := func(host string) {
		if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
			return
		}
		if host != "" && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	if host, _, err := net.SplitHostPort(addr); err == nil {
		add(host)
	}
	if u, err := url.Parse(dialled); err == nil {
		add(u.Hostname())
	}
	return names
}
