// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// FuzzSeparate holds our cut against Helm's: the same documents in the same order,
// less those that are nothing.
func FuzzSeparate(f *testing.F) {
	for _, seed := range []string{"a: 1\n---\nb: 1\n", "---a\n------\n\n--- # b\n{}", "\r\n---\r\nx", "a\n---\n---\n---b---\n--", "# x\n---\nnull\n---\n ---\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.TrimSpace(text) == "" {
			return // Helm does not come to it
		}
		if diff := cmp.Diff(documents(text), documents(string(separate(text)))); diff != "" {
			t.Errorf("%q becomes %q (-helm +convoy):\n%s", text, separate(text), diff)
		}
	})
}

// documents are those that Helm sees.
func documents(text string) []string {
	split := releaseutil.SplitManifests(text)
	var list []string
	for i := range len(split) {
		document := split[fmt.Sprintf("manifest-%d", i)]
		// A separator that is left at a document's start begins the same document.
		for strings.HasPrefix(document, "---") && strings.TrimLeft(document, "-") != document {
			document = strings.TrimSpace(strings.TrimPrefix(document, "---"))
		}
		if !nothing(document) {
			list = append(list, document)
		}
	}
	return list
}
