// SPDX-License-Identifier: Apache-2.0

// Package controller is what the reconcilers of the hub share: they drive the
// flow source -> render -> store -> deliver -> apply -> observe -> report up to
// the order, one package beneath for each kind. A reconciler reads from
// hub/cache, calls the rooms, and hands what came of it to hub/report.
//
// Reconcilers run on controller-runtime's controllers, without a manager and
// without a client: a Feed brings the keys of what changed in the cache, and
// all keys again at each resync, which costs nothing when nothing changed.
package controller
