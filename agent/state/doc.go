// SPDX-License-Identifier: Apache-2.0

// Package state keeps what the edge has of its own: the accepted orders, the
// inventories, the layers of renders and the agent's identity, in Secrets of the
// agent's namespace. It stands beside the step apply of the flow source -> render ->
// store -> deliver -> apply -> observe -> report: with it the engine goes on when
// the hub is away and when the agent is started anew.
package state
