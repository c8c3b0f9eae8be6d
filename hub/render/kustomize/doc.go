// SPDX-License-Identifier: Apache-2.0

// Package kustomize builds a kustomization out of the tree of one source. It is part
// of render, the second step of the flow source -> render -> store -> deliver ->
// apply -> observe -> report.
//
// The work is done by kustomize's own library, which can also dial, run programs and
// read the host's files, and which ends the process on some inputs. So a walk comes
// before it: it follows every reference of every kustomization, refuses by file and
// name what is not a file of the source, checks each text that will be parsed, and
// copies what it has seen into a file system in memory. The library is given that
// copy and nothing else.
package kustomize
