// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"kumodo.io/convoy/hub/render/files"
)

// scpUser begins a reference of the form user@host:path.
var scpUser = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// remote reports a reference that kustomize takes for one to another machine, and
// those that a person means so. It has to be at least as wide as kustomize's own
// rules: whatever passes it is only ever looked up in memory.
func remote(reference string) bool {
	lower := strings.ToLower(strings.TrimSpace(reference))
	for _, prefix := range []string{"git::", "http:", "https:", "ssh:", "file:", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return strings.Contains(lower, "://") || strings.Contains(lower, "::") ||
		strings.Contains(lower, "?ref=") || strings.Contains(lower, "?version=") || scpUser.MatchString(lower)
}

// resolve gives the place in the tree that a reference of a kustomization in folder
// means.
func resolve(folder, reference string) (string, error) {
	if remote(reference) {
		return "", ErrRemote
	}
	if strings.HasPrefix(reference, "/") {
		return "", files.ErrOutside
	}
	// Climbing is counted from the folder, so that it is seen when it leaves the source.
	return cleaned(path.Join("./"+folder, reference))
}

func cleaned(name string) (string, error) {
	clean, err := files.Clean(name)
	if err != nil {
		return "", files.ErrOutside
	}
	return clean, nil
}

// below reports a place in or below a folder.
func below(name, folder string) bool {
	return folder == "" || name == folder || strings.HasPrefix(name, folder+"/")
}

// oneLine reports a text that may be a path: those with several lines are inline.
func oneLine(text string) bool { return !strings.Contains(strings.TrimSpace(text), "\n") }

// numbered names one of a list's fields: patches[2].path.
func numbered(list string, i int, field string) string {
	if field == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d].%s", list, i, field)
}
