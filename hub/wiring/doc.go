// SPDX-License-Identifier: Apache-2.0

// Package wiring puts the rooms of the hub together: it is the one place that
// sees all of them, and so the map of the flow source -> render -> store ->
// deliver -> apply -> observe -> report. It has no logic of its own, only small
// adapters between what a room gives and what another one asks for.
//
// Order of the start, and the opposite for the end: etcd, API server, probes,
// cache, sources, renderer, orders, reports, controllers, gateway. So the
// sessions of the agents end first, then the writers, then requests are drained,
// and etcd is closed last.
package wiring
