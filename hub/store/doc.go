// SPDX-License-Identifier: Apache-2.0

// Package store keeps renders under the digests of their bytes: the third step of
// the flow source -> render -> store -> deliver -> apply -> observe -> report.
// render writes both layers of a render, deliver and the gateway read them.
//
// A Backend (package file, or memory for tests) keeps named blobs and knows
// nothing of their content. On it stand two stores with one interface: Plain,
// for objects layers, and Sealer, which encrypts what it is given. Both name a
// blob by the digest of the bytes that were put in, and check that digest again
// while the blob is read: a changed bit is ErrCorrupt, never content.
package store
