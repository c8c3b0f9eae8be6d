// SPDX-License-Identifier: Apache-2.0

// Package files is the tree of one source as a render sees it: names and bytes in
// memory, and nothing else of any machine. It is part of render, the second step of
// the flow source -> render -> store -> deliver -> apply -> observe -> report.
//
// A Tree remembers which parts of it were looked at, so that a render is made anew
// when one of those changes, and left alone when something else of the source does.
package files
