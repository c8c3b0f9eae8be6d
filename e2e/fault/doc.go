// SPDX-License-Identifier: Apache-2.0

// Package fault stops and starts what a fleet stands on, and looks at what comes of it:
// the API server of a target, the host's API server and etcd, the hub's own etcd, the
// hub itself. It covers the steps deliver, apply, observe and report of the flow source
// -> render -> store -> deliver -> apply -> observe -> report. Other faults are shown
// where their means are: cut links in e2e/proxy, certificates in e2e/edge, lost stores
// in e2e/restore, deletions in e2e/deletion, a cluster that was made again in e2e/cases
// (HA-06). With CONVOY_SOAK=1 what has to be watched for minutes is.
package fault
