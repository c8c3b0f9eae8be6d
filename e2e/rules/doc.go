// SPDX-License-Identifier: Apache-2.0

// Package rules tests health rules that users write, on real control planes: from
// `kubectl apply` of a set on the hub to the health that a Release shows of what runs at
// the edge, with an agent there and with an engine in the hub. It looks at the steps
// deliver, observe and report of the flow source -> render -> store -> deliver -> apply
// -> observe -> report.
package rules
