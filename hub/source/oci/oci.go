// SPDX-License-Identifier: Apache-2.0

// Package oci takes artifacts from an OCI registry: trees of manifests as Flux and
// others push them, single YAML files, and charts. It belongs to the first step of
// the flow source -> render -> store -> deliver -> apply -> observe -> report.
package oci

// Ref is what is wanted of a repository; at most one field is set, none means the
// tag latest.
type Ref struct {
	Tag    string `json:"tag,omitempty"`
	Semver string `json:"semver,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Resolved is one artifact.
type Resolved struct {
	// Display is for people: latest@sha256:<hex>, or the digest alone.
	Display string `json:"display"`
	// Tag that led to it; empty for a digest that was given.
	Tag string `json:"tag,omitempty"`
	// Digest of the manifest: sha256:<hex>.
	Digest string `json:"digest"`
}

// Fetched says what a fetch brought.
type Fetched struct {
	// TransferBytes that came over the network; Files and Bytes of the snapshot.
	TransferBytes int64 `json:"transferBytes"`
	Files         int   `json:"files"`
	Bytes         int64 `json:"bytes"`
}
