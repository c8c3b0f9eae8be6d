// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// source is a folder with one app in each kind of content.
const source = `
-- plain/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2}
-- plain/settings.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: correct-horse}
-- base/kustomization.yaml --
resources: [app.yaml]
-- base/app.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {color: red}
-- overlays/eu/kustomization.yaml --
namePrefix: eu-
resources: [../../base]
-- chart/Chart.yaml --
apiVersion: v2
name: shop
version: 1.2.3
-- chart/values.yaml --
color: red
-- chart/templates/app.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-app
  namespace: {{ .Release.Namespace }}
data:
  color: {{ .Values.color }}
  kube: {{ .Capabilities.KubeVersion.Version }}
{{- with .Values.password }}
  password: {{ . }}
{{- end }}
-- images/pod.yaml --
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: web:1}]}
-- broken/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
kind: ConfigMap
metadata:
  name: [b]
-- needs/Chart.yaml --
apiVersion: v2
name: needs
version: 1.0.0
dependencies:
  - {name: db, version: 1.0.0, repository: "https://charts.example.com"}
-- needs/templates/a.yaml --
-- given/all.yaml --
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData:
  values.yaml: |
    password: correct-horse
---
apiVersion: v1
kind: ConfigMap
metadata: {name: colors}
data: {eu: "color: blue"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: labels-eu}
data:
  body: |
    metadata: {labels: {region: "{{ .cluster.region }}"}}
`

func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range txtar.Parse([]byte(source)).Files {
		name := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// released is the file of a Release with that spec.
func released(t *testing.T, spec string) string {
	t.Helper()
	return file(t, "apiVersion: core.convoy.kumodo.io/v1alpha1\nkind: Release\nmetadata: {name: shop, namespace: team-a}\nspec:\n  clusterRef: {name: edge}\n"+
		"  source: {kind: GitRepository, name: app}\n"+spec)
}

// fromRegistry has a Release take its chart from a HelmRegistry.
func fromRegistry(t *testing.T, release string) string {
	t.Helper()
	text, err := os.ReadFile(release)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, strings.Replace(string(text), "kind: GitRepository", "kind: HelmRegistry", 1))
}

// laptop runs the plugin without a kubeconfig.
func laptop(t *testing.T, args ...string) (out, problems string, code int, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	command.SetArgs(append([]string{"render"}, args...))
	err = command.ExecuteContext(t.Context())
	code = exit(err, &stderr)
	return stdout.String(), stderr.String(), code, err
}

func TestRenderMakesWhatTheHubWouldMake(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	tests := map[string]struct {
		spec string
		args []string
		want []string // in the output, in that order
	}{
		"of manifests":                  {"  content: {path: plain}\n", []string{"-o", "names"}, []string{"secret/login\n", "configmap/settings\n", "deployment.apps/web\n"}},
		"of a file":                     {"  content: {path: plain/web.yaml}\n", []string{"-o", "names"}, []string{"deployment.apps/web\n"}},
		"without the values of Secrets": {"  content: {path: plain}\n", nil, []string{"password: <sealed>\n"}},
		"of a kustomization with its base beside it": {"  content: {path: overlays/eu}\n", nil, []string{"color: red", "name: eu-app\n"}},
		"of a chart, told of the cluster":            {"  content: {path: chart}\n", []string{"--kube-version", "v1.30.0"}, []string{"color: red", "kube: v1.30.0", "name: shop-app", "namespace: team-a"}},
		"of a chart with values of all kinds": {
			"  content:\n    path: chart\n    helm:\n      valuesFrom: [{kind: ConfigMap, name: colors, key: eu}, {kind: Secret, name: db}]\n", []string{"--values-from-dir", filepath.Join(dir, "given")},
			[]string{"color: blue", "password: <sealed>"},
		},
		"with inline values over all others": {
			"  content:\n    path: chart\n    helm:\n      valuesFrom: [{kind: ConfigMap, name: colors, key: eu}]\n      values: {color: green}\n", []string{"--values-from-dir", filepath.Join(dir, "given")},
			[]string{"color: green"},
		},
		"of a chart of a registry, unpacked beside others": {"  content: {helm: {chart: {name: charts/chart}}}\n", []string{"REGISTRY"}, []string{"color: red", "name: shop-app"}},
		"with the digests that are given for images":       {"  content: {path: images}\n  images: {policy: Pin}\n", []string{"--image", "web:1=sha256:" + strings.Repeat("0", 64)}, []string{"@sha256:000"}},
		"with tags where digests would be pinned":          {"  content: {path: images}\n  images: {policy: Pin}\n", []string{"--images-as-is"}, []string{"image: web:1"}},
		"with mutations, for one cluster": {
			"  content: {path: plain/web.yaml}\n  mutations:\n    - {type: goTemplate, from: {name: 'labels-{{ .cluster.region }}', path: body}}\n" +
				"    - {type: mergePatch, if: 'cluster.name == \"edge-7\"', inline: ['{\"spec\":{\"replicas\":7}}']}\n",
			[]string{"--cluster", "region=eu", "--cluster-name", "edge-7", "--values-from-dir", filepath.Join(dir, "given")},
			[]string{"region: eu", "replicas: 7"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, args := released(t, test.spec), test.args
			if len(args) == 1 && args[0] == "REGISTRY" {
				release, args = fromRegistry(t, release), nil
			}
			out, problems, code, err := laptop(t, append([]string{"-f", release, "--source", dir}, args...)...)
			if err != nil || code != 0 {
				t.Fatalf("exit code %d: %s", code, problems)
			}
			rest := out
			for _, want := range test.want {
				at := strings.Index(rest, want)
				if at < 0 {
					t.Fatalf("the output has no %q in its place:\n%s", want, out)
				}
				rest = rest[at:]
			}
			if strings.Contains(out, "correct") || strings.Contains(out, "Y29ycmVjd") {
				t.Errorf("a Secret's value is shown:\n%s", out)
			}
		})
	}
}

func TestWhatRenderCannotMakeSaysWhy(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	tests := map[string]struct {
		spec string
		args []string
		says []string
	}{
		"faults with file, document and line":     {spec: "  content: {path: broken}\n", says: []string{"broken/a.yaml, document 2, line "}},
		"a path that is not there":                {spec: "  content: {path: none}\n", says: []string{"none"}},
		"a path that leads out":                   {spec: "  content: {path: ../x}\n", says: []string{"leads out of the source"}},
		"a chart's dependency that is not there":  {spec: "  content: {path: needs}\n", says: []string{"db"}},
		"a Secret that was not given":             {spec: "  content: {path: chart, helm: {valuesFrom: [{kind: Secret, name: db}]}}\n", says: []string{"valuesFrom[0]", "Secret db is not among"}},
		"a key that the cluster does not have":    {spec: "  content: {path: plain}\n  mutations: [{type: goTemplate, from: {name: 'l-{{ .cluster.region }}', path: body}}]\n", says: []string{"mutations[0]", "cluster.region"}},
		"a chart of a registry that is not there": {spec: "  content: {helm: {chart: {name: db}}}\n", args: []string{"HELM"}, says: []string{"chart db of a HelmRegistry cannot be had offline"}},
		"images that only a registry knows":       {spec: "  content: {path: chart}\n  images: {policy: Pin}\n", args: []string{"PIN"}, says: []string{"registry.example/web:1 cannot be had offline", "--image"}},
		"a folder that is not there":              {spec: "  content: {path: plain}\n", args: []string{"--source", filepath.Join(dir, "nowhere")}, says: []string{"the source folder"}},
		"no file":                                 {args: []string{"NOFILE"}, says: []string{"-f"}},
		"a pair that is none":                     {spec: "  content: {path: plain}\n", args: []string{"--cluster", "region"}, says: []string{"--cluster", "KEY=VALUE"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"-f", released(t, test.spec), "--source", dir}
			for _, arg := range test.args {
				switch arg {
				case "HELM":
					args[1] = fromRegistry(t, args[1])
				case "PIN":
					pinned := t.TempDir()
					if err := os.WriteFile(filepath.Join(pinned, "pod.yaml"), []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: registry.example/web:1}]}\n"), 0o600); err != nil {
						t.Fatal(err)
					}
					args[1], args[3] = released(t, "  images: {policy: Pin}\n"), pinned
				case "NOFILE":
					args = nil
				default:
					args = append(args, arg)
				}
			}
			out, problems, code, err := laptop(t, args...)
			if err == nil || code != exitFailed || out != "" {
				t.Fatalf("exit code %d, %v: %s", code, err, out)
			}
			for _, says := range test.says {
				if !strings.Contains(problems, says) {
					t.Errorf("it does not say %q: %s", says, problems)
				}
			}
		})
	}
}

func TestRenderTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	before := filepath.Join(t.TempDir(), "before.yaml")
	release := released(t, "  content: {path: plain}\n")
	out, _, _, err := laptop(t, "-f", release, "--source", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(before, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	again, _, _, err := laptop(t, "-f", release, "--source", dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out, again); diff != "" {
		t.Errorf("two renders of the same differ (-first +second):\n%s", diff)
	}
	for name, against := range map[string]string{"what was printed before": before, "the manifests themselves": filepath.Join(dir, "plain")} {
		if out, problems, code, err := laptop(t, "-f", release, "--source", dir, "--diff-against", against); code != 0 || err != nil || out != "" {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, problems)
		}
	}
	web := filepath.Join(dir, "plain", "web.yaml")
	text, err := os.ReadFile(web)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(web, bytes.Replace(text, []byte("replicas: 2"), []byte("replicas: 3"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, problems, code, err := laptop(t, "-f", release, "--source", dir, "--diff-against", before)
	if !errors.Is(err, errDifferent) || code != exitDifferent || problems != "" {
		t.Fatalf("exit code %d, %v: %s", code, err, problems)
	}
	want := `--- deployment.apps/web
+++ deployment.apps/web
@@ -3,4 +3,4 @@
 metadata:
   name: web
 spec:
-  replicas: 2
+  replicas: 3
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, problems, code, _ := laptop(t, "-f", release, "--source", dir, "--diff-against", before+".none"); code != exitFailed || !strings.Contains(problems, "--diff-against") {
		t.Errorf("exit code %d: %s", code, problems)
	}
}
