// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxLines is where a file's seam usually shows; tables make tests longer.
const (
	maxLines     = 450
	maxTestLines = 600
)

func TestEveryPackageHasExactlyOneComment(t *testing.T) {
	t.Parallel()
	comments := map[string][]string{}
	for _, file := range files(t, goFile) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		folder := path.Dir(file)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		comments[folder] = append(comments[folder], nil...)
		if parsed.Doc == nil {
			continue
		}
		comments[folder] = append(comments[folder], file)
		text, want := parsed.Doc.Text(), "Package "+parsed.Name.Name+" "
		if parsed.Name.Name == "main" {
			want = "" // the name of the program, in any form
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: the package comment begins %.40q, want %q", file, text, want)
		}
	}
	for folder, found := range comments {
		if len(found) != 1 {
			t.Errorf("%s has %d package comments, want 1 that says what it does and where it stands in the flow: %v", folder, len(found), found)
		}
	}
}

func TestEveryFileNamesTheLicence(t *testing.T) {
	t.Parallel()
	const line = "SPDX-License-Identifier: Apache-2.0"
	named := func(file string) bool {
		switch {
		case goFile(file), strings.HasSuffix(file, ".sh"), file == "Makefile", file == ".ci/run", file == ".golangci.yaml":
			return true
		default:
			return strings.HasPrefix(file, "manifests/") && strings.HasSuffix(file, ".yaml")
		}
	}
	for _, file := range files(t, named) {
		text := read(t, file)
		if goFile(file) && !generated(file) {
			if !strings.HasPrefix(text, "// "+line+"\n\n") {
				t.Errorf("%s does not begin with // %s and an empty line", file, line)
			}
			continue
		}
		head := strings.Join(strings.SplitN(text, "\n", 5)[:min(4, strings.Count(text, "\n"))], "\n")
		if !strings.Contains(head, line) {
			t.Errorf("%s does not name its licence in its first lines: %s", file, line)
		}
	}
}

func TestFilesStayNearTheirSeam(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, goFile) {
		if generated(file) {
			continue
		}
		limit := maxLines
		if strings.HasSuffix(file, "_test.go") {
			limit = maxTestLines
		}
		if lines := strings.Count(read(t, file), "\n"); lines > limit {
			t.Errorf("%s has %d lines: split it where its seam shows (at most %d)", file, lines, limit)
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	t.Parallel()
	// Written in pieces, so that this file does not find itself.
	later := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	text := func(file string) bool {
		return goFile(file) || strings.HasSuffix(file, ".sh") || strings.HasSuffix(file, ".md") ||
			strings.HasSuffix(file, ".yaml") || file == "Makefile" || file == ".ci/run"
	}
	for _, file := range files(t, text) {
		if generated(file) {
			continue
		}
		for number, line := range strings.Split(read(t, file), "\n") {
			if later.MatchString(line) {
				t.Errorf("%s:%d: %s", file, number+1, strings.TrimSpace(line))
			}
		}
	}
}

func TestTheModuleReplacesNothing(t *testing.T) {
	t.Parallel()
	for number, line := range strings.Split(read(t, "go.mod"), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod:%d: %s: who imports this module would not get the replacement", number+1, line)
		}
	}
}
