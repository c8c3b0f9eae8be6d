// SPDX-License-Identifier: Apache-2.0

// Package objects shows the objects of a render to people and pipelines: as YAML, JSON
// or names, or as what differs from others. It stands beside the flow, after render. It
// shows no Secret value: it is given none, or masks it.
package objects
