// SPDX-License-Identifier: Apache-2.0

// Package backup reads all that a hub has stored, piece by piece, and writes it
// into a hub that has nothing yet: the keys of etcd under the hub's prefix, as they
// lie there, and the blobs of the render store. Keys to sign and seal with are not
// its matter. It stands beside the flow, under the verbs backup and restore of the
// API server.
package backup
