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
	// minTellBytes of a value that the library's words may not repeat: shorter ones are in
	// every message.
	minTellBytes = 3
	// maxNameBytes of what counts as a name.
	maxNameBytes = 253
	// maxTellBytes of a file that is parsed to know its names again. Of a larger one all
	// words count as values.
	maxTellBytes = 4 << 20
	// maxTellDepth of values inside of values that are looked at by themselves.
	maxTellDepth = 256
	// maxPlaces that a message names where words are withheld.
	maxPlaces = 3
	// maxMessage of what kustomize says.
	maxMessage = 2 << 10
)
