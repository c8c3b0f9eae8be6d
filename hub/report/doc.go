// SPDX-License-Identifier: Apache-2.0

// Package report writes down what was observed: it is the last step of the flow
// source -> render -> store -> deliver -> apply -> observe -> report, and the
// only writer of status in the hub.
//
// The controllers hand in outcomes (what was rendered, ordered, held back), the
// gateway hands in the reports of agents. Both end in one pure function that
// makes conditions, and in one compare-and-swap on the same storage that serves
// HTTP. An undisturbed rollout costs two status writes on its Release and one
// write of its ReleaseInventory; a write that would change nothing is not made.
package report
