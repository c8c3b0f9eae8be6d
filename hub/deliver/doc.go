// SPDX-License-Identifier: Apache-2.0

// Package deliver says what each Cluster is to do: it makes and signs orders
// and stands between store and apply in the flow source -> render -> store ->
// deliver -> apply -> observe -> report.
//
// An apply order lives in the status of its Release. The last order of a
// deleted Release (remove or release) lives in a key of the hub's own in etcd
// until the agent has carried it out. Both together are a Cluster's set; a
// signed head proves which set that is, and until when. The agent pulls: a set
// is never sent, only asked for.
package deliver
