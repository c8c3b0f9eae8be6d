// SPDX-License-Identifier: Apache-2.0

package offline

const (
	// maxRounds in which a render is given more of the source.
	maxRounds = 16
	// maxFolderDepth of the source, links followed.
	maxFolderDepth = 64
)
