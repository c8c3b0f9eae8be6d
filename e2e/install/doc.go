// SPDX-License-Identifier: Apache-2.0

// Package install puts the hub and its agents onto real control planes from
// the shipped manifests, as a platform engineer would: kubectl apply of
// manifests/hub, then `kubectl convoy join` piped into kubectl on each edge.
// Suites, benchmarks and the demo start from here and look at the whole flow,
// source to report.
package install
