// SPDX-License-Identifier: Apache-2.0

// Package lease elects the one agent of a cluster that dials the hub and applies:
// with two pods of one identity, as after a node was cut off, they would displace
// each other at the hub and undo each other's work. It stands beside the steps
// deliver and apply of the flow source -> render -> store -> deliver -> apply ->
// observe -> report: neither runs without the Lease.
package lease
