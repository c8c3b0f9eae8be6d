// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/helm"
	"kumodo.io/convoy/pkg/manifest"
)

// Where `make test-parity` says that helm is, and that what it says is to be written
// down.
const (
	helmProgram  = "CONVOY_PARITY_HELM"
	updateGolden = "CONVOY_PARITY_UPDATE"
	otherCharts  = "CONVOY_PARITY_CHARTS"
)

// parity is one render that has to be the same as that of `helm template`.
type parity struct {
	name   string
	chart  string // a folder of testdata/charts
	step   string // or a step of a case: ID/STEP
	packed bool
	files  []string
	values string
	kube   string
	apis   []string
}

var parities = []parity{
	{name: "a web application", chart: "webapp"},
	{name: "a web application with a file of values for production", chart: "webapp", files: []string{"values-production.yaml"}},
	{name: "a web application as an archive", chart: "webapp", packed: true, values: "{replicaCount: 9, env: {WORKERS: null, EXTRA: 1000000}}"},
	{name: "a database with subcharts", chart: "database"},
	{name: "a database alone", chart: "database", values: "{architecture: standalone, metrics: {enabled: false}, auth: {existingSecret: mine}, primary: {persistence: {storageClass: '-'}, extraVolumes: [{name: x, emptyDir: {}}]}, backup: {keep: null}}"},
	{name: "an operator with definitions and certificates", chart: "operator"},
	{name: "a service out of a library", chart: "service", values: "{extra: null}"},
	{name: "an umbrella with conditions and tags and aliases and imports", chart: "umbrella"},
	{name: "an umbrella with other tags", chart: "umbrella", values: "{tags: {internal: false, messaging: true}, shop: {enabled: false}, admin: {enabled: true, ingress: {host: admin.example.test}}}"},
	{name: "globals through three levels", chart: "platform", values: "{global: {labels: {tier: null, extra: x}}, blue: {app: {size: tiny}}}"},
	{name: "many hooks", chart: "migrations"},
	{name: "templates in values", chart: "templated"},
	{name: "files of the chart", chart: "files"},
	{name: "a strict schema", chart: "strict"},
	{name: "a strict schema with other values", chart: "strict", files: []string{"values-cluster.yaml"}, values: "{inner: {level: 4.5}}"},
	{name: "capabilities of a cluster of today", chart: "edge", apis: []string{"networking.k8s.io/v1/Ingress", "monitoring.example.test/v1"}},
	{name: "capabilities of an old cluster", chart: "edge", kube: "v1.17.9"},
	{name: "jobs", chart: "jobs"},
	{name: "two hundred objects", chart: "tenants"},
	{name: "rules and dashboards that hold braces", chart: "monitoring"},
	{name: "a chart of the first form", chart: "legacy"},
	{name: "HE-01 numbers", step: "HE-01/a"},
	{name: "HE-02 nulls", step: "HE-02/v1"},
	{name: "HE-04 separators", step: "HE-04/v1"},
	{name: "HE-05 empty documents", step: "HE-05/v1"},
	{name: "HE-07 hooks and definitions", step: "HE-07/v1"},
}

// generated is what certificates look like in a Secret; each render has others.
var generated = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]+`)

const anew = "bWFkZSBhbmV3"

func TestARenderIsWhatHelmTemplateGives(t *testing.T) {
	for _, p := range parities {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			folder, tree := p.source(t)
			golden := filepath.Join("testdata", "golden", strings.ReplaceAll(p.name, " ", "-")+".yaml")
			want := p.helm(t, folder, golden)
			if want == nil {
				var err error
				if want, err = os.ReadFile(golden); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(parsed(t, want), p.ours(t, tree)); diff != "" {
				t.Errorf("(-helm +convoy):\n%s", diff)
			}
		})
	}
}

// TestChartsOfOthersAreWhatHelmTemplateGives holds all charts below a folder beside
// helm, each with its own values. What helm refuses, we have to refuse.
func TestChartsOfOthersAreWhatHelmTemplateGives(t *testing.T) {
	root := os.Getenv(otherCharts)
	if root == "" {
		t.Skip("make test-parity CHARTS=folder compares the charts of a folder")
	}
	found, err := filepath.Glob(filepath.Join(root, "*", "Chart.yaml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no charts below %s: %v", root, err)
	}
	for _, file := range found {
		folder := filepath.Dir(file)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			p := parity{}
			want, said := p.run(t, folder)
			result, err := p.render(t, files.New(readFolder(t, folder), nil))
			switch {
			case said != "" && err != nil:
				t.Skipf("neither renders it: %.300s and %.300v", said, err)
			case said != "" || err != nil:
				t.Fatalf("helm: %.300s; convoy: %.600v", said, err)
			}
			wanted, err := manifest.Parse("helm.yaml", want)
			if err != nil {
				if _, _, ours := result.Objects(); ours == nil {
					t.Fatalf("only helm's text is refused: %v", err)
				}
				t.Skipf("refused in both, as no manifests: %.600v", err)
			}
			ours, again := p.plain(t, result), p.ours(t, files.New(readFolder(t, folder), nil))
			helms := byName(t, wanted)
			for name := range ours {
				ours[name], helms[name] = sameOnly(ours[name], again[name], helms[name])
			}
			if diff := cmp.Diff(helms, ours); diff != "" {
				t.Errorf("(-helm +convoy):\n%s", diff)
			}
		})
	}
}

// sameOnly leaves out of a and other what is random: where two renders, a and b, differ.
func sameOnly(a, b, other any) (any, any) {
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		z, ok := other.(map[string]any)
		if !ok {
			return a, other
		}
		for key := range x {
			x[key], z[key] = sameOnly(x[key], y[key], z[key])
		}
		return x, z
	case []any:
		y, _ := b.([]any)
		z, ok := other.([]any)
		if !ok || len(y) != len(x) || len(z) != len(x) {
			return a, other
		}
		for i := range x {
			x[i], z[i] = sameOnly(x[i], y[i], z[i])
		}
		return x, z
	}
	if cmp.Equal(a, b) {
		return a, other
	}
	return nil, nil
}

// source gives the chart as a folder, for helm, and as a tree.
func (p parity) source(t testing.TB) (folder string, tree *files.Tree) {
	t.Helper()
	folder = filepath.Join("testdata", "charts", p.chart)
	if p.step != "" {
		id, step, _ := strings.Cut(p.step, "/")
		list, _ := caseStep(t, id, step)
		folder = filepath.Join(t.TempDir(), "app")
		for name, text := range list {
			path := filepath.Join(filepath.Dir(folder), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := readFolder(t, folder)
	if p.packed {
		var members []*tar.Header
		for _, file := range list {
			members = append(members, member("x/"+strings.TrimPrefix(file.Name, "app/"), string(file.Data)))
		}
		data := packed(t, members...)
		folder = filepath.Join(t.TempDir(), "app.tgz")
		if err := os.WriteFile(folder, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		list = []files.File{{Name: "app", Data: []byte(data)}}
	}
	return folder, files.New(list, nil)
}

func readFolder(t testing.TB, folder string) []files.File {
	t.Helper()
	var list []files.File
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		list = append(list, files.File{Name: "app" + filepath.ToSlash(strings.TrimPrefix(path, folder)), Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// inline are the values that are given beside files: those of the case, or its own.
func (p parity) inline(t testing.TB) map[string]any {
	t.Helper()
	if p.step != "" {
		id, step, _ := strings.Cut(p.step, "/")
		_, values := caseStep(t, id, step)
		return values
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(p.values), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func (p parity) version() string {
	if p.kube != "" {
		return p.kube
	}
	return "v1.37.2"
}

// helm runs the real one, if there is one, and holds it against what was written down.
func (p parity) helm(t *testing.T, folder, golden string) []byte {
	t.Helper()
	if os.Getenv(helmProgram) == "" {
		return nil
	}
	out, said := p.run(t, folder)
	if said != "" {
		t.Fatalf("helm: %s", said)
	}
	if os.Getenv(updateGolden) != "" {
		if err := os.WriteFile(golden, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(out)); diff != "" {
		t.Errorf("helm says something else than it did (-written down +now); make test-parity UPDATE=1 writes it down:\n%s", diff)
	}
	return out
}

// run gives what helm prints, and what it says when it fails.
func (p parity) run(t *testing.T, folder string) (out []byte, said string) {
	t.Helper()
	args := []string{"template", "rel", folder, "--namespace", "team", "--include-crds", "--skip-tests", "--kube-version", p.version()}
	for _, api := range p.apis {
		args = append(args, "--api-versions", api)
	}
	for _, name := range p.files {
		args = append(args, "--values", filepath.Join(folder, name))
	}
	text, err := yaml.Marshal(p.inline(t))
	if err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	home := t.TempDir()
	command := exec.CommandContext(ctx, os.Getenv(helmProgram), append(args, "--values", values)...)
	command.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if out, err = command.Output(); err != nil {
		return nil, err.Error() + ": " + stderr.String()
	}
	return generated.ReplaceAll(out, []byte(anew)), ""
}

// ours renders, and takes off what convoy adds to hooks and definitions.
func (p parity) ours(t testing.TB, tree *files.Tree) map[string]any {
	t.Helper()
	result, err := p.render(t, tree)
	if err != nil {
		t.Fatal(err)
	}
	return p.plain(t, result)
}

func (p parity) render(t testing.TB, tree *files.Tree) (helm.Result, error) {
	t.Helper()
	apis := append(helm.DefaultAPIVersions(), p.apis...)
	for _, version := range helm.DefaultAPIVersions() {
		// Of a version without kinds every kind counts as served; helm means none.
		apis = append(apis, version+"/Nothing")
	}
	recorder := facts.NewRecorder(&facts.World{KubeVersion: p.version(), APIVersions: apis})
	result, err := helm.Render(helm.Options{
		Tree: tree, Path: "app", ReleaseName: "rel", Namespace: "team", ValuesFiles: p.files,
		Values: []map[string]any{p.inline(t)}, Facts: recorder,
	})
	for i := range result.Files {
		result.Files[i].Data = generated.ReplaceAll(result.Files[i].Data, []byte(anew))
	}
	return result, err
}

func (p parity) plain(t testing.TB, result helm.Result) map[string]any {
	t.Helper()
	crds, objects, err := result.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range crds {
		remove(object, "helm.sh/resource-policy")
	}
	for _, object := range objects {
		if _, hook := annotationsOf(object)["helm.sh/hook"]; hook {
			remove(object, "convoy.kumodo.io/hook", "convoy.kumodo.io/hook-delete-policy", "convoy.kumodo.io/sync-wave")
		}
	}
	return byName(t, append(crds, objects...))
}

func remove(object manifest.Object, keys ...string) {
	metadata, _ := object.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range keys {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

func parsed(t testing.TB, text []byte) map[string]any {
	t.Helper()
	// Helm prints a document that is an empty map, and we leave it out.
	objects, err := manifest.Parse("helm.yaml", bytes.ReplaceAll(text, []byte("\n{}\n"), []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, objects)
}

func byName(t testing.TB, objects []manifest.Object) map[string]any {
	t.Helper()
	named := map[string]any{}
	for _, object := range objects {
		if _, twice := named[object.Identity.String()]; twice {
			t.Errorf("%s is there twice", object.String())
		}
		named[object.Identity.String()] = object.Content
	}
	return named
}

func TestTheChartsOfTheParityRunAreOfManyStyles(t *testing.T) {
	var charts []string
	for _, p := range parities {
		if p.chart != "" && !slices.Contains(charts, p.chart) {
			charts = append(charts, p.chart)
		}
	}
	if len(charts) < 12 {
		t.Errorf("only %d charts: %v", len(charts), charts)
	}
}
