// SPDX-License-Identifier: Apache-2.0

// Package crash kills real processes at chosen instants and looks at what is left: an
// agent at its n-th call of the API server, a hub at its n-th write to etcd. Whatever
// the n, a fresh process has to end the work in the state that an undisturbed run ends
// in. It covers the steps deliver, apply, observe and report of the flow source ->
// render -> store -> deliver -> apply -> observe -> report. With CONVOY_SOAK=1 every n
// is tried, otherwise a few spread over all of them.
package crash
