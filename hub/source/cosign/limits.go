// SPDX-License-Identifier: Apache-2.0

package cosign

const (
	// maxPayloadBytes of what is signed, and of a bundle.
	maxPayloadBytes = 1 << 20
	// maxSignatures of one artifact that are tried.
	maxSignatures = 100
	// maxKeys that a source may give; maxKeyBytes of one.
	maxKeys     = 64
	maxKeyBytes = 64 << 10
	// minRSABits of a key.
	minRSABits = 2048
)
