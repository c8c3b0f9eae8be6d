// SPDX-License-Identifier: Apache-2.0

// Package healthrule reconciles sets of health rules and makes of them the layer of
// rules that orders name: it stands beside render and store, before deliver, in the
// flow source -> render -> store -> deliver -> apply -> observe -> report. Each set is
// compiled once and its status says which rules cannot be used; those that can become a
// document, the same for all Releases that use the same sets, which the render store
// keeps like a layer of a render and agents judge objects by.
package healthrule
