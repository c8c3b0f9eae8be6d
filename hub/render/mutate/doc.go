// SPDX-License-Identifier: Apache-2.0

// Package mutate changes the objects of a render: by merging templated partial
// objects into them, by JSON patches (RFC 6902) and by JSON merge patches (RFC 7386).
// It is part of render, the second step of the flow source -> render -> store ->
// deliver -> apply -> observe -> report.
//
// It is pure: what it knows is the objects, the mutations and the facts that it is
// given. Only what a template or an expression really asks of the Cluster and the
// Release is asked of the facts, so that a render counts on nothing else.
//
// A body is parsed as YAML first. Templates stand in its texts, and each is executed
// by itself, so that nothing that comes out of one can add a field, end a quote or
// begin a document. The objects' own texts are data, whatever braces they have.
package mutate
