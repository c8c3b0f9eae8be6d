// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/helm"
)

var block = regexp.MustCompile("(?s)```(?:text|yaml)\n(.*?)```")

func TestTheExampleOfThePageGivesWhatThePageSays(t *testing.T) {
	page, err := os.ReadFile("../../../docs/spec/content.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Helm\n")
	blocks := block.FindAllStringSubmatch(section, 3)
	if len(blocks) != 3 {
		t.Fatal("the section has no three examples")
	}
	tree := texts{}
	for _, file := range txtar.Parse([]byte(blocks[0][1])).Files {
		tree[file.Name] = string(file.Data)
	}
	var release v1alpha1.Release
	if err := yaml.UnmarshalStrict([]byte(blocks[1][1]), &release); err != nil {
		t.Fatal(err)
	}
	content := release.Spec.Content
	var values map[string]any
	if err := json.Unmarshal(content.Helm.Values.Raw, &values); err != nil {
		t.Fatal(err)
	}
	result := render(t, tree, withFiles(content.Helm.ValuesFiles...), withValues(values), func(o *helm.Options) {
		o.Path, o.ReleaseName, o.Namespace = content.Path, release.Name, release.Namespace
	})
	if diff := cmp.Diff(blocks[2][1], result.all()); diff != "" {
		t.Errorf("(-page +render):\n%s", diff)
	}
}
