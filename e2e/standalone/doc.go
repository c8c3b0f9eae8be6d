// SPDX-License-Identifier: Apache-2.0

// Package standalone tests a hub without a host cluster: the real program, a
// real Git remote, and a real agent on a real control plane, through the whole
// flow source -> render -> store -> deliver -> apply -> observe -> report.
package standalone
