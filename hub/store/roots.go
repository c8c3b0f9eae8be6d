// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Roots are digests of blobs that something refers to.
type Roots map[string]struct{}

func (r Roots) add(digests ...string) {
	for _, digest := range digests {
		if digest != "" {
			r[digest] = struct{}{}
		}
	}
}

// Has says whether something refers to a blob.
func (r Roots) Has(digest string) bool {
	_, ok := r[digest]
	return ok
}

// AddRelease adds both layers of all that a Release refers to: the render that it
// has, the one that is ordered, adopted or its own, the one that its agent, connected
// or away, last reported as applied, and those of its history; and the health rules
// that are ordered.
func (r Roots) AddRelease(release *v1alpha1.Release) {
	status := &release.Status
	r.add(status.RenderRef, status.AppliedRef)
	if status.Render != nil {
		r.add(status.Render.Objects.Digest, status.Render.Sealed.Digest)
	}
	for i := range status.History {
		r.add(status.History[i].RenderRef, status.History[i].Sealed.Digest)
	}
	if status.Order == nil {
		return
	}
	var order tunnel.Order
	if err := json.Unmarshal([]byte(status.Order.Payload), &order); err != nil {
		return // nobody can be sent what cannot be read
	}
	for _, layer := range []*tunnel.Layer{order.Objects, order.Sealed, order.Rules} {
		if layer != nil {
			r.add(layer.Digest)
		}
	}
}

// AddCluster adds what a Cluster refers to: the renders of Releases that run there
// and do not exist here.
func (r Roots) AddCluster(cluster *v1alpha1.Cluster) {
	for i := range cluster.Status.UnknownReleases {
		r.add(cluster.Status.UnknownReleases[i].RenderRef)
	}
}
