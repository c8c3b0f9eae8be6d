// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"crypto/x509"
	"encoding/base64"
)

// hubCAs are those that agents and the gateway prove themselves with.
func (h *hub) hubCAs() []*x509.Certificate {
	all := h.keys.HubCAs()
	out := make([]*x509.Certificate, 0, len(all))
	for _, ca := range all {
		out = append(out, ca.Certificate)
	}
	return out
}

// orderKeys are those whose orders agents are told to accept.
func (h *hub) orderKeys() [][]byte {
	all := h.keys.OrderKeys()
	out := make([][]byte, 0, len(all))
	for _, key := range all {
		out = append(out, key.Public)
	}
	return out
}

// orderKeyTexts are the same as they stand in an answer of the API.
func (h *hub) orderKeyTexts() []string {
	var out []string
	for _, key := range h.orderKeys() {
		out = append(out, base64.StdEncoding.EncodeToString(key))
	}
	return out
}
