// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is too much for the hub is too much for the plugin. Neither can import the
// other's limits, so they are compared as they are written.
func TestThePluginRendersUnderTheLimitsOfTheHub(t *testing.T) {
	hub := written(t, "hub/render/limits.go", "hub/worker/limits.go")
	plugin := written(t, "kubectl-convoy/offline/limits.go")
	for _, name := range []string{"jobTime", "jobCPU", "maxStreamBytes", "maxStackBytes", "workerGCPercent", "watchEvery", "ResidentBytes", "AddressBytes", "HeapBytes"} {
		if diff := cmp.Diff(hub[name], plugin[name]); diff != "" || hub[name] == "" {
			t.Errorf("%s (-hub +plugin):\n%s", name, diff)
		}
	}
}

// written are the values of constants and of fields in literals, as they are written.
func written(t *testing.T, names ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	fset := token.NewFileSet()
	add := func(name string, value ast.Expr) {
		var text strings.Builder
		if err := printer.Fprint(&text, fset, value); err != nil {
			t.Fatal(err)
		}
		all[name] = text.String()
	}
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					add(n.Names[i].Name, value)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					add(key.Name, n.Value)
				}
			}
			return true
		})
	}
	return all
}
