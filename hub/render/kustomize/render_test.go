// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/kustomize"
	"kumodo.io/convoy/pkg/manifest"
)

// tree makes a source out of the text of an archive.
func tree(text string) *files.Tree {
	var list []files.File
	for _, file := range txtar.Parse([]byte(text)).Files {
		list = append(list, files.File{Name: file.Name, Data: file.Data})
	}
	return files.New(list, nil)
}

// caseTree is the source of one step of a case, without its links.
func caseTree(t *testing.T, id, step string) []files.File {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../../../e2e/testdata/cases", id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: found %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document struct {
			Step       string            `yaml:"step"`
			Tree       map[string]string `yaml:"tree"`
			TreeBase64 map[string]string `yaml:"treeBase64"`
		}
		if err := decoder.Decode(&document); err != nil {
			t.Fatalf("case %s has no step %s: %v", id, step, err)
		}
		if document.Step != step {
			continue
		}
		var list []files.File
		for name, text := range document.Tree {
			list = append(list, files.File{Name: name, Data: []byte(text)})
		}
		for name, text := range document.TreeBase64 {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, files.File{Name: name, Data: raw})
		}
		return list
	}
}

// build gives the objects by "Kind namespace/name".
func build(t *testing.T, source *files.Tree, folder string) (map[string]map[string]any, error) {
	t.Helper()
	list, err := kustomize.Render(kustomize.Options{Tree: source, Path: folder})
	if err != nil {
		return nil, err
	}
	objects := map[string]map[string]any{}
	for _, file := range list {
		parsed, err := manifest.Parse(file.Name, file.Data)
		if err != nil {
			return nil, err
		}
		for _, object := range parsed {
			objects[object.Kind+" "+object.Namespace+"/"+object.Name] = object.Content
		}
	}
	return objects, nil
}

func keys(objects map[string]map[string]any) []string {
	var list []string
	for name := range objects {
		list = append(list, name)
	}
	return sorted(list)
}

func text(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestKU01TheNamespaceMovesWhatUpstreamMoves(t *testing.T) {
	objects, err := build(t, files.New(caseTree(t, "KU-01", "v1"), nil), "over")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ClusterRole /ku01", "ClusterRoleBinding /ku01", "Global t-ku-01/unknown-scope", "RoleBinding t-ku-01/ku01", "ServiceAccount t-ku-01/mine"}
	if diff := cmp.Diff(want, keys(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	subjects := func(name string) map[string]string {
		found := map[string]string{}
		for _, subject := range objects[name]["subjects"].([]any) {
			found[subject.(map[string]any)["name"].(string)] = subject.(map[string]any)["namespace"].(string)
		}
		return found
	}
	if diff := cmp.Diff(map[string]string{"mine": "t-ku-01", "default": "t-ku-01", "stranger": "elsewhere"}, subjects("ClusterRoleBinding /ku01")); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"stranger": "elsewhere"}, subjects("RoleBinding t-ku-01/ku01")); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

func TestKU02ChangedLiteralsGiveTheConfigMapAnotherName(t *testing.T) {
	list := caseTree(t, "KU-02", "v1")
	one, err := build(t, files.New(list, nil), "app")
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Data = bytes.ReplaceAll(list[i].Data, []byte("mode=one"), []byte("mode=two"))
	}
	two, err := build(t, files.New(list, nil), "app")
	if err != nil {
		t.Fatal(err)
	}
	name := func(objects map[string]map[string]any) string {
		for key := range objects {
			if rest, ok := strings.CutPrefix(key, "ConfigMap t-ku-02/conf-"); ok {
				return "conf-" + rest
			}
		}
		return ""
	}
	if name(one) == "" || name(two) == "" || name(one) == name(two) {
		t.Errorf("%v, then %v", keys(one), keys(two))
	}
	if got := text(t, two["Deployment t-ku-02/app"]); !strings.Contains(got, name(two)) {
		t.Errorf("the Deployment does not name %s: %s", name(two), got)
	}
}

func TestKU04BasesInSiblingFoldersAreBuilt(t *testing.T) {
	list := caseTree(t, "KU-04", "fine")
	find := func(name string) []byte {
		for _, file := range list {
			if file.Name == name {
				return file.Data
			}
		}
		return nil
	}
	// A snapshot follows links inside the source: this is what they leave.
	list = append(list,
		files.File{Name: "linked/values.env", Data: find("shared/values.env")},
		files.File{Name: "linked-base/kustomization.yaml", Data: find("base/kustomization.yaml")},
		files.File{Name: "linked-base/cm.yaml", Data: find("base/cm.yaml")})
	for folder, want := range map[string]string{"over": "ConfigMap t-ku-04/base", "over2": "ConfigMap t-ku-04/base", "linked": "ConfigMap t-ku-04/env"} {
		objects, err := build(t, files.New(list, nil), folder)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		if diff := cmp.Diff([]string{want}, keys(objects)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", folder, diff)
		}
	}
}

func TestKU04NothingOutsideTheSourceIsRead(t *testing.T) {
	faults := map[string]error{"one/secret.env": files.ErrLink, "two/dir": files.ErrLink, "three/secret.env": files.ErrLink}
	tests := []struct {
		folder string
		want   error
		text   string
	}{
		{"one", files.ErrLink, `one/kustomization.yaml: configMapGenerator[0].files: "secret.env": one/secret.env: a symbolic link`},
		{"two", files.ErrLink, `two/kustomization.yaml: configMapGenerator[0].files: "dir/outside/secret.env": two/dir: a symbolic link`},
		{"three", files.ErrLink, `three/kustomization.yaml: configMapGenerator[0].files: "secret.env": three/secret.env: a symbolic link`},
		{"four", files.ErrOutside, `four/kustomization.yaml: resources: "../../outside": leads out of the source`},
		{"five", kustomize.ErrRemote, `five/kustomization.yaml: resources: "git::ssh://code.example.test/team/base?ref=main": is not in the source`},
	}
	for _, test := range tests {
		t.Run("KU-04: folder "+test.folder, func(t *testing.T) {
			_, err := build(t, files.New(caseTree(t, "KU-04", "escape"), faults), test.folder)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestYA04TheSameFilesThroughAKustomizationGiveTheSame(t *testing.T) {
	list := caseTree(t, "YA-04", "v1")
	list = append(list, files.File{Name: "app/kustomization.yaml", Data: []byte("resources: [1.yaml, 2.yml, 3.json, 4.yaml, sub/5.yaml, empty.yaml]\n")})
	objects, err := build(t, files.New(list, nil), "app")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range "123456789" {
		want = append(want, "ConfigMap t-ya-04/c"+string(n))
	}
	if diff := cmp.Diff(want, keys(objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := objects["ConfigMap t-ya-04/c7"]["data"].(map[string]any)["text"]; got != "---\nnot: a document\n" {
		t.Errorf("c7 text = %q", got)
	}
}

func TestYA01QuotedWordsAndOctalsComeThroughAsTheyAre(t *testing.T) {
	list := caseTree(t, "YA-01", "v1")
	raw, err := manifest.Parse("pod.yaml", list[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, files.File{Name: "app/kustomization.yaml", Data: []byte("resources: [pod.yaml]\n")})
	objects, err := build(t, files.New(list, nil), "app")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(raw[0].Content, objects["Deployment t-ya-01/modes"]); diff != "" {
		t.Errorf("(-raw +kustomize):\n%s", diff)
	}
}

func TestYA01UnquotedWordsAreWhatKustomizeMakesOfThem(t *testing.T) {
	list := caseTree(t, "YA-01", "v2")
	with := func(name string) *files.Tree {
		return files.New(append(slices.Clone(list), files.File{Name: "app/kustomization.yaml", Data: []byte("resources: [" + name + ".yaml]\n")}), nil)
	}
	for name, want := range map[string]string{"bad1": "ConfigMap t-ya-01/bad1: data.half: must be text", "bad3": "app: kustomize: "} {
		if _, err := build(t, with(name), "app"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	objects, err := build(t, with("bad2"), "app")
	if got := text(t, objects["ConfigMap t-ya-01/bad2"]); err != nil || !strings.Contains(got, `"flag":"true"`) {
		t.Errorf("an annotation that is true, as kustomize build writes it: %s, %v", got, err)
	}
}

func TestYA02MarksAndLineEndsComeThroughAKustomization(t *testing.T) {
	list := caseTree(t, "YA-02", "v1")
	list = append(list, files.File{Name: "app/kustomization.yaml", Data: []byte("\uFEFFresources: [bom.yaml, crlf.yaml, text.yaml]\r\n")})
	objects, err := build(t, files.New(list, nil), "app")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap t-ya-02/bom", "ConfigMap t-ya-02/bom2", "ConfigMap t-ya-02/crlf", "ConfigMap t-ya-02/text"}
	if diff := cmp.Diff(want, keys(objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := objects["ConfigMap t-ya-02/crlf"]["data"].(map[string]any)["block"]; got != "one\ntwo\n" {
		t.Errorf("block = %q", got)
	}
}
