// SPDX-License-Identifier: Apache-2.0

package gatewaytest

import (
	"context"
	"fmt"
	"slices"

	"kumodo.io/convoy/pkg/tunnel"
)

// Behind implements gateway.Orders.
func (h *Hub) Behind(clusterUID string, have map[string]int64) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.setLocked(clusterUID)
	var behind []string
	for uid, sequence := range have {
		if sequence > s.orders[uid].Sequence {
			behind = append(behind, uid)
		}
	}
	slices.Sort(behind)
	return behind
}

// Take implements gateway.Held: it keeps what it gets, unverified, see Taken.
func (h *Hub) Take(_ context.Context, cluster tunnel.ClusterID, orders []tunnel.Signed) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken[cluster.UID] = append(h.taken[cluster.UID], orders...)
	close(h.observed)
	h.observed = make(chan struct{})
	return nil
}

// Taken waits until an agent has given back n orders, and returns them.
func (h *Hub) Taken(ctx context.Context, clusterUID string, n int) ([]tunnel.Signed, error) {
	for {
		h.mu.Lock()
		got, next := h.taken[clusterUID], h.observed
		h.mu.Unlock()
		if len(got) >= n {
			return got, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return got, fmt.Errorf("wait for %d orders of %s: %w", n, clusterUID, ctx.Err())
		}
	}
}

// Reset implements gateway.Resets, see Resets.
func (h *Hub) Reset(_ context.Context, cluster tunnel.ClusterID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resets = append(h.resets, cluster.UID)
	return nil
}

// Resets are the Clusters that were said to stand for another cluster, in order.
func (h *Hub) Resets() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.resets)
}

// Updates of cluster statuses that were asked for, whether they wrote or not:
// each would cost a read at least.
func (h *Hub) Updates() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.updates
}
