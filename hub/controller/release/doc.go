// SPDX-License-Identifier: Apache-2.0

// Package release reconciles Releases: it takes each from its source to its
// order, the first half of the flow source -> render -> store -> deliver ->
// apply -> observe -> report, and from its deletion to its last order.
//
// A reconcile looks at the source, then at the Cluster, renders when the inputs
// of the render changed, orders when what is to be enforced changed or a sync
// was asked for, and hands all of that to hub/report as one outcome. With
// unchanged inputs it costs no call and no write.
package release
