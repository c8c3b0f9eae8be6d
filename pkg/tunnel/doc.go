// SPDX-License-Identifier: Apache-2.0

// Package tunnel is the wire between hub and agent: a websocket, TLS 1.3 inside
// it, a stream multiplexer inside that, and HTTP/1.1 with one request a stream
// in both directions; with the messages, signatures, join tokens, certificates
// and limits that both ends share. It stands between deliver and apply on the
// way out, and between observe and report on the way back. docs/protocol.md is
// the page about it. It knows nothing of Kubernetes.
package tunnel
