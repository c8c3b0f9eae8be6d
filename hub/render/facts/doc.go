// SPDX-License-Identifier: Apache-2.0

// Package facts is what a render may know of the world around its source: of the
// Cluster, of the Release itself, of what the cluster serves. It is part of render,
// the second step of the flow source -> render -> store -> deliver -> apply ->
// observe -> report.
//
// Each fact has a name, and whoever asks for one goes through a Recorder, which
// remembers the name. A render is made anew only when the answer to something that it
// asked has changed, so a key that no template reads rolls nothing out, and Releases
// on many clusters whose answers agree share one render.
package facts
