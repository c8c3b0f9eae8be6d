// SPDX-License-Identifier: Apache-2.0

// Package content turns the tree of a source into the objects of a Release: the
// pure part of render, the second step of the flow source -> render -> store ->
// deliver -> apply -> observe -> report. It opens no file, dials nobody and keeps
// nothing, so the hub runs it in a worker and a command on a laptop can call it
// directly.
//
// It finds out what kind of content a path has (manifests, a chart, a
// kustomization), has the package of that kind make objects of it, and does what is
// done to all alike: mutations, hooks into one form, images to digests, and which values
// came in through a Secret and have to be sealed.
package content
