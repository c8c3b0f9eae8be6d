// SPDX-License-Identifier: Apache-2.0

// Package git speaks Git's own protocol to a server, as far as source needs it:
// list refs, fetch one commit, and turn its tree into a snapshot on disk. It is
// the first step of the flow source -> render -> store -> deliver -> apply ->
// observe -> report.
//
// It stands on go-git's formats (pkt-line, sideband, packs, deltas, trees) but not
// on its transports and repositories: those know file: and git: URLs and run
// programs, send credentials along a redirect, and read packs without a limit.
// Here there are two transports, https and ssh, both dialling through an
// address.Policy, and every byte that comes in is counted.
//
// Refs lists text and runs in the hub. Fetch unpacks what a tenant's server sends
// and runs in a fetch worker.
package git
