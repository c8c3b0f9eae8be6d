// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/pkg/manifest"
)

type tree map[string]string

func (f tree) files(scope ...string) *files.Tree {
	var list []files.File
	for name, data := range f {
		if scope == nil || slices.ContainsFunc(scope, func(s string) bool { return strings.HasPrefix(name, s+"/") || name == s }) {
			list = append(list, files.File{Name: name, Data: []byte(data)})
		}
	}
	return files.NewPart(list, nil, scope)
}

func configMap(name string, more ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" + strings.Join(more, "\n") + "\n"
}

func job(change ...func(*content.Job)) content.Job {
	j := content.Job{
		Content: v1alpha1.ReleaseContent{Path: "app"}, Namespace: "team",
		World: facts.World{Self: facts.Self{Name: "shop", Namespace: "team", TargetNamespace: "team", UID: "u"}, KubeVersion: "v1.37.2", APIVersions: []string{"v1", "apps/v1"}},
	}
	for _, f := range change {
		f(&j)
	}
	return j
}

// names are those of the objects with their waves, in apply order.
func names(set *manifest.Set) []string {
	var list []string
	for i := range set.Objects {
		list = append(list, fmt.Sprintf("%d %s", set.Objects[i].Wave, set.Objects[i].Name))
	}
	return list
}

var chart = tree{
	"app/Chart.yaml":        "{apiVersion: v2, name: app, version: 0.1.0, appVersion: '7'}",
	"app/values.yaml":       "name: from-chart",
	"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Values.name }}-{{ .Release.Name }}'}\n",
	"common/values.yaml":    "name: from-file",
}

func TestThePathDecidesWhatItIsWhenNobodySays(t *testing.T) {
	tests := []struct {
		name  string
		files tree
		job   content.Job
		kind  string
		want  []string
	}{
		{"a folder of manifests", tree{"app/a.yaml": configMap("a"), "app/sub/b.yml": configMap("b"), "app/README.md": "# hi"}, job(), "manifests", []string{"0 a", "0 b"}},
		{"one file", tree{"app": "", "one.yaml": configMap("a")}, job(func(j *content.Job) { j.Content.Path = "one.yaml" }), "manifests", []string{"0 a"}},
		{"a chart", chart, job(), "helm", []string{"0 from-chart-shop"}},
		{"a kustomization", tree{"app/kustomization.yaml": "{resources: [a.yaml], namePrefix: x-}", "app/a.yaml": configMap("a")}, job(), "kustomize", []string{"0 x-a"}},
		{"the whole source", tree{"a.yaml": configMap("a")}, job(func(j *content.Job) { j.Content.Path = "." }), "manifests", []string{"0 a"}},
		{"what is said wins", tree{"app/kustomization.yaml": configMap("odd"), "app/a.yaml": configMap("a")}, job(func(j *content.Job) { j.Content.Manifests = &v1alpha1.ManifestsContent{} }), "manifests", []string{"0 a", "0 odd"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result, err := content.Render(test.job, test.files.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if result.Kind != test.kind {
				t.Errorf("taken for %s", result.Kind)
			}
			if diff := cmp.Diff(test.want, names(result.Set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChartsGetValuesInTheOrderOfTheirWeight(t *testing.T) {
	helm := func(change func(*content.Job)) content.Job {
		return job(func(j *content.Job) { j.Content.Helm = &v1alpha1.HelmContent{} }, change)
	}
	tests := []struct {
		name string
		job  content.Job
		want string
	}{
		{"the chart's own", helm(func(*content.Job) {}), "0 from-chart-shop"},
		{"a file of the source over them", helm(func(j *content.Job) { j.Content.Helm.ValuesFiles = []string{"../common/values.yaml"} }), "0 from-file-shop"},
		{"texts over files, the last one wins", helm(func(j *content.Job) {
			j.Content.Helm.ValuesFiles = []string{"../common/values.yaml"}
			j.Values = []content.Values{{Text: "name: first"}, {Text: `{"name": "second"}`}}
		}), "0 second-shop"},
		{"one text at a place", helm(func(j *content.Job) { j.Values = []content.Values{{Text: "placed", TargetPath: "name"}} }), "0 placed-shop"},
		{"a release name of its own", helm(func(j *content.Job) { j.Content.Helm.ReleaseName = "other" }), "0 from-chart-other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result, err := content.Render(test.job, chart.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, names(result.Set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if result.Chart != "app" || result.ChartVersion != "0.1.0" || result.AppVersion != "7" {
				t.Errorf("provenance: %+v", result)
			}
		})
	}
}

func TestARenderNamesWhatItRead(t *testing.T) {
	kustomization := tree{"app/kustomization.yaml": "{resources: [../base]}", "base/kustomization.yaml": "{resources: [a.yaml]}", "base/a.yaml": configMap("a"), "other/x": ""}
	tests := []struct {
		name  string
		files tree
		job   content.Job
		want  []string
	}{
		{"manifests read nothing of the world", tree{"app/a.yaml": configMap("a")}, job(), nil},
		{"a chart reads the name that it is rendered under", chart, job(), []string{"self.releaseName"}},
		{"not where it has one of its own", chart, job(func(j *content.Job) { j.Content.Helm = &v1alpha1.HelmContent{ReleaseName: "x"} }), nil},
		{"a values file elsewhere", chart, job(func(j *content.Job) {
			j.Content.Helm = &v1alpha1.HelmContent{ReleaseName: "x", ValuesFiles: []string{"../common/values.yaml"}}
		}), []string{"path:common/values.yaml"}},
		{"KU-04: a base elsewhere", kustomization, job(), []string{"path:base"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result, err := content.Render(test.job, test.files.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, result.Reads); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	result, err := content.Render(job(), kustomization.files("app"), nil)
	if !errors.Is(err, content.ErrIncomplete) || !slices.Contains(result.Needs.Paths, "base") {
		t.Errorf("a part of the source: %v, needs %+v", err, result.Needs)
	}
}

func TestImagesGoByDigest(t *testing.T) {
	pod := `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      initContainers: [{name: i, image: busybox}]
      containers: [{name: c, image: "nginx:1"}, {name: d, image: "x@sha256:dd"}]
      volumes: [{name: v, image: {reference: "models:2"}}]
`
	pinned := job(func(j *content.Job) { j.Pin = true })
	result, err := content.Render(pinned, tree{"app/a.yaml": pod}.files(), nil)
	if want := []string{"busybox", "models:2", "nginx:1"}; !errors.Is(err, content.ErrIncomplete) || !slices.Equal(result.Needs.Images, want) {
		t.Fatalf("got %v, needs %+v", err, result.Needs)
	}
	pinned.World.Images = map[string]string{"busybox": "sha256:bb", "nginx:1": "sha256:aa", "models:2": "sha256:cc"}
	result, err = content.Render(pinned, tree{"app/a.yaml": pod}.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"image:busybox", "image:models:2", "image:nginx:1"}, result.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := manifest.Append(nil, result.Set.Objects[0].Content)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"busybox@sha256:bb"`, `"nginx:1@sha256:aa"`, `"x@sha256:dd"`, `"models:2@sha256:cc"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

func TestWhatCannotBeRenderedSaysWhy(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	tests := []struct {
		name  string
		files tree
		job   content.Job
		want  error
		texts []string
	}{
		{"PR-06: nothing under the path", tree{"app/README.md": "x"}, job(), content.ErrEmpty, nil},
		{"a chart whose only object is a hook of a mistyped word", tree{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.1.0}", "app/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/hook: pre-instal}}\n"},
			job(), content.ErrEmpty, []string{"1 with a hook's annotation", "argocd.argoproj.io/hook) left out"}},
		{"manifests whose only object is a hook that is not run", tree{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {argocd.argoproj.io/hook: Skip}}\n"},
			job(), content.ErrEmpty, []string{"1 with a hook's annotation"}},
		{"no such path", tree{"b/a.yaml": configMap("a")}, job(), content.ErrPath, []string{"app"}},
		{"a path out of the source", tree{"app/a.yaml": ""}, job(func(j *content.Job) { j.Content.Path = "../x" }), content.ErrPath, nil},
		{"all faults of all files", tree{"app/a.yaml": "a: [", "app/b.yaml": pointer, "app/c.yaml": "kind: X\n---\napiVersion: v1\n"}, job(), files.ErrPointer,
			[]string{"app/a.yaml, document 1", "app/b.yaml: is a Git LFS pointer", "app/c.yaml, document 1", "app/c.yaml, document 2"}},
		{"values that are no map", chart, job(func(j *content.Job) {
			j.Values = []content.Values{{Origin: "Secret db, key values.yaml", Text: "[s3cr3t]"}}
		}), content.ErrValues, []string{"Secret db, key values.yaml"}},
		{"a place of values that is none", chart, job(func(j *content.Job) {
			j.Values = []content.Values{{Origin: "ConfigMap x, key y", Text: "x", TargetPath: "a..b"}}
		}), content.ErrValues, []string{"targetPath"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := content.Render(test.job, test.files.files(), nil)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v", err)
			}
			for _, text := range test.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in %v", text, err)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("it repeats a Secret: %v", err)
			}
		})
	}
	empty := job(func(j *content.Job) { j.AllowEmpty = true })
	if result, err := content.Render(empty, tree{"app/README.md": "x"}.files(), nil); err != nil || len(result.Set.Objects) != 0 {
		t.Errorf("PR-06: an empty render that is allowed: %v", err)
	}
}

func TestAPointerThatNobodyReadsIsNoFault(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	if _, err := content.Render(job(), tree{"app/a.yaml": configMap("a"), "app/logo.png": pointer}.files(), nil); err != nil {
		t.Errorf("GO-02: %v", err)
	}
}

func TestMutationsTakeBodiesFromTheSourceAndKeysOfTheCluster(t *testing.T) {
	j := job(func(j *content.Job) {
		j.World.Cluster = map[string]string{"name": "edge-1", "region": "eu"}
		j.Mutations = []content.Mutation{
			{Type: v1alpha1.MutationMergePatch, File: "patches/a.yaml"},
			{Type: v1alpha1.MutationGoTemplate, Bodies: []string{"data: {region: '{{ .cluster.region }}'}"}, If: "cluster.name == 'edge-1'"},
			{Type: v1alpha1.MutationMergePatch, Bodies: []string{"data: {password: s3cr3t-w0rd}"}, Secret: true},
		}
	})
	result, err := content.Render(j, tree{"app/a.yaml": configMap("shop"), "patches/a.yaml": "data: {from: source}"}.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"from": "source", "region": "eu", "password": "s3cr3t-w0rd"}
	if diff := cmp.Diff(want, result.Set.Objects[0].Content["data"]); diff != "" {
		t.Errorf("MU-01 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cluster.name", "cluster.region", "path:patches/a.yaml"}, result.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/data/password"}, result.Set.Objects[0].Sealed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	j.Mutations = []content.Mutation{{Name: "scale", Type: v1alpha1.MutationMergePatch, File: "patches/none.yaml"}}
	if _, err := content.Render(j, tree{"app/a.yaml": configMap("shop")}.files(), nil); err == nil || !strings.Contains(err.Error(), "mutation scale: patches/none.yaml") {
		t.Errorf("got %v", err)
	}
}
