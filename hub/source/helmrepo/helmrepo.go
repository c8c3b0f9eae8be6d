// SPDX-License-Identifier: Apache-2.0

// Package helmrepo takes charts from a chart repository: an index.yaml over https,
// and the archives that it names; or, for oci://, a registry with a repository for
// each chart. It belongs to the first step of the flow source -> render -> store ->
// deliver -> apply -> observe -> report.
//
// An index is read as a stream: whatever its size, what is held in memory is one
// line and the entry of one version of the wanted chart.
package helmrepo

// Resolved is one version of a chart, and where it is.
type Resolved struct {
	Chart   string `json:"chart"`
	Version string `json:"version"`
	// URL of the archive; of an oci:// repository its URL.
	URL string `json:"url"`
	// Digest: sha256:<hex>, of the archive as the index has it (empty if it has none),
	// of an oci:// repository that of the manifest.
	Digest string `json:"digest,omitempty"`
}

// Fetched says what a fetch brought.
type Fetched struct {
	// Digest of the archive: sha256:<hex>.
	Digest string `json:"digest"`
	// TransferBytes that came over the network; Files and Bytes of the snapshot.
	TransferBytes int64 `json:"transferBytes"`
	Files         int   `json:"files"`
	Bytes         int64 `json:"bytes"`
}
