// SPDX-License-Identifier: Apache-2.0

// Package state keeps what an engine has of its own: the accepted orders, the
// inventories and the layers of renders, in Secrets of one namespace of the cluster
// that it enforces. It stands beside the step apply of the flow source -> render ->
// store -> deliver -> apply -> observe -> report: with it the engine goes on when
// the hub is away and when its process is started anew, be that an agent or the hub
// itself.
package state
