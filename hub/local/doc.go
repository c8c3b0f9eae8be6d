// SPDX-License-Identifier: Apache-2.0

// Package local runs the engine in the hub's own process for Clusters without an
// agent: those that the hub dials (agentless) and the one that it runs in
// (inCluster). It stands for deliver, apply, observe and report in the flow source
// -> render -> store -> deliver -> apply -> observe -> report, with the same signed
// orders, the same engine and the same reports as an agent, and no wire between.
//
// Each such Cluster has one goroutine, its cell. A cell probes the cluster, writes
// what it found, and runs an engine while the probe says that it can; orders go in
// and reports go out by comparing what both sides hold, never by counting messages.
// What the engine keeps lies in Secrets on the target, as an agent's does.
package local
