// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
)

// Notes ask for what a tree of texts cannot say: files that are kept elsewhere.
var (
	lfsNote       = regexp.MustCompile(`git lfs track \S+?, commit (\S+)(?: and (\S+?))?,`)
	submoduleNote = regexp.MustCompile(`add submodule (\w+)`)
)

// someCommit that a submodule is at. Nobody has it.
const someCommit = "5d0c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b"

// pointers of Git LFS that a note asks for, by path.
func pointers(note string) map[string]string {
	out := map[string]string{}
	m := lfsNote.FindStringSubmatch(note)
	if m == nil {
		return out
	}
	for _, path := range m[1:] {
		if path == "" {
			continue
		}
		out[path] = fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(path)), 1000+len(path))
	}
	return out
}

// submodules that a note asks for: paths.
func submodules(note string) []string {
	var out []string
	for _, m := range submoduleNote.FindAllStringSubmatch(note, -1) {
		out = append(out, m[1])
	}
	return out
}

// gitmodules says that they are on another host.
func gitmodules(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&b, "[submodule %q]\n\tpath = %s\n\turl = https://other.example.test/%s.git\n", path, path, path)
	}
	return b.String()
}
