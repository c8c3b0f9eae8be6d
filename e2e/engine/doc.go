// SPDX-License-Identifier: Apache-2.0

// Package engine tests pkg/engine against a real control plane: the steps apply,
// observe and report of the flow source -> render -> store -> deliver -> apply ->
// observe -> report, with the orders made here and the reports read here.
package engine
