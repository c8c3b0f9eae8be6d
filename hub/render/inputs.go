// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Inputs are all that decides about a render's bytes. The version of the renderer
// is none of it: a new hub renders nothing again.
type Inputs struct {
	// PathDigest of what is below the content's path (Snapshot.PathDigest).
	PathDigest string
	// Content is the kind of content: ContentManifests.
	Content string
	// Namespace for namespaced objects that name none.
	Namespace string
}

// ContentManifests: the YAML and JSON files are the objects.
const ContentManifests = "manifests"

// InputsHash is "sha256:<hex>" over the inputs. As long as it is unchanged, a
// Release keeps the render that it has.
func InputsHash(in Inputs) string {
	sum := sha256.New()
	for _, field := range [][2]string{{"path", in.PathDigest}, {"content", in.Content}, {"namespace", in.Namespace}} {
		fmt.Fprintf(sum, "%s %q\n", field[0], field[1])
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
