// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/hub/apiserver/resource"
	"kumodo.io/convoy/hub/cache"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/store"
)

// maxHolders is how many agents are asked for one lost layer.
const maxHolders = 8

// finder makes lost layers of health rules again, and finds others at the agents that
// they were delivered to. The sessions are there once the gateway is made.
type finder struct{ hub *hub }

func (f finder) Find(ctx context.Context, digest string, _ bool, take func(io.Reader) error) error {
	if f.hub.rules != nil {
		if document, ok := f.hub.rules.Made(digest); ok {
			return take(bytes.NewReader(document))
		}
	}
	known, agents, engines := f.hub.cache, f.hub.gateway, f.hub.engines
	if known == nil || agents == nil || engines == nil {
		return fmt.Errorf("%s: %w", digest, store.ErrNotFound)
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("digest", digest)
	asked := 0
	var failures error
	for _, uid := range holders(known, digest) {
		if asked == maxHolders || ctx.Err() != nil {
			break
		}
		if !agents.Sessions().Connected(string(uid)) && !engines.Served(string(uid)) {
			continue
		}
		asked++
		err := f.ask(ctx, uid, digest, take)
		if err == nil {
			return nil
		}
		if !errors.Is(err, gateway.ErrNotHeld) && !errors.Is(err, gateway.ErrAway) {
			log.Error(err, "An agent did not give a layer back", "clusterUID", uid)
			failures = errors.Join(failures, err)
		}
	}
	return errors.Join(fmt.Errorf("%s: %w at %d agents", digest, store.ErrNotFound, asked), failures)
}

func (f finder) ask(ctx context.Context, uid types.UID, digest string, take func(io.Reader) error) (err error) {
	blob, err := f.open(ctx, uid, digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	return take(blob)
}

// open asks the engine in this process, or the agent.
func (f finder) open(ctx context.Context, uid types.UID, digest string) (io.ReadCloser, error) {
	if f.hub.engines.Served(string(uid)) {
		return f.hub.engines.Fetch(ctx, string(uid), digest)
	}
	blob, _, err := f.hub.gateway.Sessions().Fetch(ctx, string(uid), digest)
	return blob, err
}

// holders are the Clusters that a layer was ordered for, those first that run it.
func holders(known *cache.Cache, digest string) []types.UID {
	var first, rest []types.UID
	seen := map[types.UID]bool{}
	for _, release := range known.ReleasesReferringTo(digest) {
		cluster, ok := known.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name})
		if !ok || seen[cluster.UID] {
			continue
		}
		seen[cluster.UID] = true
		if status := &release.Status; status.AppliedRef == digest || status.Render != nil && status.Render.Sealed.Digest == digest {
			first = append(first, cluster.UID)
			continue
		}
		rest = append(rest, cluster.UID)
	}
	return append(first, rest...)
}

// roots lists all that is referred to, as it is stored: a complete list, or an error.
func (h *hub) roots(ctx context.Context) (store.Roots, error) {
	storage := h.server.Storage()
	releases, err := storage.Releases.List(ctx, resource.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Releases: %w", err)
	}
	clusters, err := storage.Clusters.List(ctx, resource.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	roots := store.Roots{}
	for i := range releases.Items {
		roots.AddRelease(&releases.Items[i])
	}
	for i := range clusters.Items {
		roots.AddCluster(&clusters.Items[i])
	}
	return roots, nil
}
