// SPDX-License-Identifier: Apache-2.0

// Package preview tests what a hub on a real control plane says that Releases render to,
// to whom, and that a laptop renders the same. It looks at the steps source and render of
// the flow source -> render -> store -> deliver -> apply -> observe -> report.
package preview
