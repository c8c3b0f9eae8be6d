// SPDX-License-Identifier: Apache-2.0

// Package view asks a hub on real control planes how the Releases of an edge are: their
// health, their differences, their history and their hooks, while the agent is there and
// when it is gone. It looks at the step report of the flow source -> render -> store ->
// deliver -> apply -> observe -> report.
package view
