// SPDX-License-Identifier: Apache-2.0

// Package observer answers what nobody keeps: what a Release would render to, how its
// objects are now and how they differ from what was applied, and what is left of what
// was applied before. It stands beside the flow source -> render -> store -> deliver ->
// apply -> observe -> report: it uses the first two steps, asks the agents, reads the
// store and writes nothing. Its listener is the API
// server's alone, which has found out by then that the user may ask; every request
// must prove that it comes from there.
package observer
