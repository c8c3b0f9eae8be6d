// SPDX-License-Identifier: Apache-2.0

// Package proxy tests the link between agent and hub, the step deliver of the
// flow source -> render -> store -> deliver -> apply -> observe -> report, through
// what stands between them in the field: proxies, load balancers and inspectors
// as Debian ships them, and links that are slow, lossy or cut. Its tests have the
// build tag debian, since they need those programs, root and network namespaces.
package proxy
