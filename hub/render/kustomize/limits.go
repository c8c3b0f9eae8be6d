// SPDX-License-Identifier: Apache-2.0

package kustomize

// Limits of one build. Time and memory are those of the render worker.
const (
	// maxDepth of kustomizations inside kustomizations.
	maxDepth = 64
	// maxVisits: a base counts each time that it is built. Folders that name each other
	// twice at each level would be built without end.
	maxVisits = 2_000
	// maxReferences of all kustomizations together, each as often as it is built.
	maxReferences = 50_000
	// maxSchemaPaths through the types of a file of crds.
	maxSchemaPaths = 10_000
	// minSecretBytes of a text of a Secret that no message may repeat: shorter ones are in
	// every message.
	minSecretBytes = 4
	// maxMessage of what kustomize says.
	maxMessage = 2 << 10
)
