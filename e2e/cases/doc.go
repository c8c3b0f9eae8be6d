// SPDX-License-Identifier: Apache-2.0

// Package cases replays case files: YAML streams that say what is rendered, what
// somebody else writes to the managed cluster, what happens, and what has to be true
// afterwards. It plays them through the whole flow, source -> render -> store ->
// deliver -> apply -> observe -> report, on real control planes: a hub beside its
// host, an agent on each edge, a Git server in between. `make case` is its command
// line; the format is described in e2e/testdata/cases/README.md.
package cases
