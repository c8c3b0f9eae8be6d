// SPDX-License-Identifier: Apache-2.0

// Package modes tests Clusters without an agent on real control planes: a hub from
// the shipped manifests, which is a target itself, and edges that it dials. It looks
// at the whole flow source -> render -> store -> deliver -> apply -> observe ->
// report, with the engine in the hub's own process.
package modes
