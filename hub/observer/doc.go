// SPDX-License-Identifier: Apache-2.0

// Package observer answers what nobody keeps: what a Release would render to. It
// stands beside the flow source -> render -> store -> deliver -> apply -> observe ->
// report: it uses its first two steps and writes nothing. Its listener is the API
// server's alone, which has found out by then that the user may ask; every request
// must prove that it comes from there.
package observer
