// SPDX-License-Identifier: Apache-2.0

// Package manifest holds the value that all rooms pass around: the set of
// Kubernetes objects of one Release, and its stored form. It turns the YAML and
// JSON files of a source into objects (Parse), orders them (waves and kinds),
// writes them as two layers of JSON lines (Set.Write, or Seal over the stream of
// a render worker) and reads those layers back line by line (Reader).
//
// In the flow source -> render -> store -> deliver -> apply -> observe -> report
// it is written by render and read by apply; nothing in it opens a file, dials
// or keeps state.
//
// The stored form is two blobs. "objects": a header line, then one object a line
// in apply order, keys sorted at every depth, each Secret value replaced by a
// keyed MAC of it. "sealed": a header line with a random salt, then for each line
// that has sealed values their JSON pointers and values. The digest of a render
// is that of "objects", so it changes when a Secret changes and tells nothing.
//
// Numbers keep the text that they were written with; the exceptions are spellings
// that JSON does not know (0755, 0x1F, .5, 1_000), which become decimal numbers,
// and whole numbers spelled with a point or an exponent (1.0, 1e3), which become
// integers. Both is what kubectl sends for the same file.
package manifest
