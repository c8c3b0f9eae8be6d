// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the hub's API server: it serves Clusters, Releases, their
// inventories and Git repositories as real API objects behind the host cluster's
// aggregator, or alone with --standalone, and keeps them in etcd. It stands
// before the flow source -> render -> store -> deliver -> apply -> observe ->
// report, where users say what they want, and after it, where they see what came
// of it.
//
// NewStorage is its table of contents: one line per resource and subresource.
package apiserver
