// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/mutate"
	"kumodo.io/convoy/pkg/manifest"
)

// TestTheExamplesOfThePageDoWhatItSays runs each part of docs/spec/content.md that has
// an object, mutations, and what comes of them.
func TestTheExamplesOfThePageDoWhatItSays(t *testing.T) {
	page, err := os.ReadFile("../../../docs/spec/content.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	ran := 0
	for _, part := range strings.Split(string(page), "\n### ") {
		name, _, _ := strings.Cut(part, "\n")
		part, _, _ = strings.Cut(part, "\n## ")
		found := block.FindAllStringSubmatch(part, -1)
		if len(found) != 3 || !strings.HasPrefix(found[1][1], "mutations:") {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			var spec struct {
				Mutations []v1alpha1.Mutation `json:"mutations"`
			}
			if err := yaml.UnmarshalStrict([]byte(found[1][1]), &spec); err != nil {
				t.Fatal(err)
			}
			var list []mutate.Mutation
			for _, m := range spec.Mutations {
				list = append(list, mutate.Mutation{Name: m.Name, If: m.If, Type: m.Type, Target: m.Target, Bodies: m.Inline})
			}
			world := &facts.World{Cluster: map[string]string{"name": "edge-1", "region": "eu-west", "size": "3"}, Self: facts.Self{Name: "shop", Namespace: "team-a"}}
			set, want := parse(t, "object", found[0][1]), parse(t, "want", found[2][1])
			if err := mutate.Apply(set, list, facts.NewRecorder(world)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(contents(want), contents(set)); diff != "" {
				t.Errorf("(-page +got):\n%s", diff)
			}
		})
	}
	if ran != 3 {
		t.Errorf("%d examples were found, one for each type of mutation was expected", ran)
	}
}

func contents(set *manifest.Set) []map[string]any {
	var list []map[string]any
	for _, object := range set.Objects {
		list = append(list, object.Content)
	}
	return list
}

// TestThePageNamesEveryFunction holds the list of the page against the functions.
func TestThePageNamesEveryFunction(t *testing.T) {
	page, err := os.ReadFile("../../../docs/spec/content.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("(?m)^\\| [a-z A-Z]+ \\| `([a-zA-Z0-9 ]+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		for _, name := range strings.Fields(found[1]) {
			named[name] = true
		}
	}
	if diff := cmp.Diff(mutate.FunctionNames(), named); diff != "" {
		t.Errorf("(-functions +page):\n%s", diff)
	}
}
