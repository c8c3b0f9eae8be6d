// SPDX-License-Identifier: Apache-2.0

// Package render makes the render of a Release: the second step of the flow
// source -> render -> store -> deliver -> apply -> observe -> report. It takes a
// source.Snapshot and gives two blobs in the store, objects and sealed (see
// pkg/manifest), and their digests.
//
// The work on tenants' files is done in a render worker (package worker): a process
// without network, files, environment or credentials, under limits, used for one
// tenant and replaced after some jobs or any failure. What runs in it is package
// content, which is pure.
//
// The MAC key stays in the hub. A worker has the plain values of a Release's
// Secrets, since they are in its files, but with the MAC key it could tell whether
// a mark in somebody else's render stands for a value that it guesses; and the key
// must never rotate by itself, so it is not handed to a process that runs what
// tenants write. The worker therefore sends canonical lines with plain values and
// the pointers to seal; the hub seals them line by line while it streams both
// layers into the store (manifest.Seal), and seals all data of Secrets whatever
// the worker says. The price is one scan of each line in the hub, and a decoding
// of those lines alone that have something to seal.
package render
