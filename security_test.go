// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestTheTestsNamedOnTheSecurityPageExist(t *testing.T) {
	t.Parallel()
	declared := map[string]string{} // folder -> text of its test files
	for _, file := range files(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") }) {
		declared[path.Dir(file)] += read(t, file)
	}
	_, table, ok := strings.Cut(read(t, "docs/security.md"), "| attack | what holds | tests |\n|---|---|---|\n")
	if !ok {
		t.Fatal("docs/security.md has no table of attacks")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	group := regexp.MustCompile("`([a-z0-9/-]+)`: ([A-Za-z0-9, ]+)")
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("a row has %d cells: %s", len(cells), row)
		}
		groups := group.FindAllStringSubmatch(cells[2], -1)
		if len(groups) == 0 {
			t.Errorf("no test is named for: %s", cells[0])
		}
		for _, one := range groups {
			for _, name := range strings.Split(one[2], ",") {
				if name = strings.TrimSpace(name); !strings.Contains(declared[one[1]], "\nfunc "+name+"(") {
					t.Errorf("%s of %s does not exist, which is named for: %s", name, one[1], cells[0])
				}
			}
		}
	}
}
