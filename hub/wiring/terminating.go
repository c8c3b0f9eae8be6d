// SPDX-License-Identifier: Apache-2.0

package wiring

import "context"

// terminating says whether a namespace of the host is being deleted.
func (h *hub) terminating(ctx context.Context, namespace string) (bool, error) {
	if h.namespaces == nil {
		return false, nil // there is no host
	}
	state, err := h.namespaces.State(ctx, namespace)
	return state.Terminating, err
}
