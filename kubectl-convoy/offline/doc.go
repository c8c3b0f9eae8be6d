// SPDX-License-Identifier: Apache-2.0

// Package offline renders a Release from a folder, as the hub would from its source: the
// step render of the flow source -> render -> store -> deliver -> apply -> observe ->
// report, on a laptop or in a pipeline. It asks nobody: facts of the cluster, ConfigMaps
// and Secrets are what it is given, and what it lacks is an error.
package offline
