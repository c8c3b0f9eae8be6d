// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of docs/protocol.md")

const (
	page  = "../../docs/protocol.md"
	start = "| constant | value | what it bounds |\n|---|---|---|\n"
)

func TestTheProtocolPageListsEveryLimit(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(raw), start)
	if !ok {
		t.Fatal("the page has no table of limits")
	}
	want := limitsTable(t)
	if *update {
		if err := os.WriteFile(page, []byte(before+start+want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("docs/protocol.md and limits.go differ (-want +got), run with -update:\n%s", diff)
	}
}

// limitsTable renders the constants of limits.go with their comments.
func limitsTable(t *testing.T) string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "limits.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	if _, err := conf.Check("limits", files, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	comment := ""
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for _, name := range value.Names {
				if !name.IsExported() {
					continue // the other end does not know it
				}
				if text := strings.TrimSpace(value.Doc.Text()); text != "" {
					comment = strings.Join(strings.Fields(text), " ")
				}
				c, ok := info.Defs[name].(*types.Const)
				if !ok {
					t.Fatalf("%s is no constant", name.Name)
				}
				fmt.Fprintf(&out, "| %s | %s | %s |\n", name.Name, shown(c), comment)
			}
		}
	}
	return out.String()
}

func shown(c *types.Const) string {
	if c.Val().Kind() != constant.Int {
		return c.Val().String()
	}
	if n, ok := constant.Int64Val(c.Val()); ok {
		switch {
		case c.Type().String() == "time.Duration":
			return time.Duration(n).String()
		case n >= 1<<20 && n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n >= 1<<10 && n%(1<<10) == 0:
			return fmt.Sprintf("%d KiB", n>>10)
		}
	}
	return c.Val().String()
}
