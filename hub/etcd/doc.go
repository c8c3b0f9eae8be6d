// SPDX-License-Identifier: Apache-2.0

// Package etcd runs the storage of a hub that has no etcd of its own: one member
// inside the hub's process, for a single replica. Only the hub can reach it,
// through a unix socket in a directory that no other user may enter; it listens
// for no peers. It stands below the whole flow: the API server keeps its objects
// in it.
package etcd
