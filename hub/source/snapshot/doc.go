// SPDX-License-Identifier: Apache-2.0

// Package snapshot is the tree of one commit on disk: what source gives to render
// in the flow source -> render -> store -> deliver -> apply -> observe -> report.
//
// A snapshot is a folder of two files: "content", the bytes of all files one
// after the other, each distinct content once, and "index", JSON, which says what
// each path is. Nothing of a tenant's tree is ever a path of the hub's disk:
// links lead nowhere, names clash with nothing, and a whole snapshot is removed
// by removing two files.
//
// Paths in a snapshot are relative, with slashes. Symbolic links are followed
// inside the tree; one that leaves it, leads nowhere or goes in circles is an
// error that names it, for whoever asks for a path that has it.
package snapshot
