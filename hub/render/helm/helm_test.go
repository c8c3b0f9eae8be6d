// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/helm"
	"kumodo.io/convoy/pkg/manifest"
)

// texts is a tree: path -> text.
type texts map[string]string

const chartYAML = "{apiVersion: v2, name: app, version: 0.0.1, appVersion: '7'}\n"

func (l texts) tree() *files.Tree {
	var list []files.File
	for name, text := range l {
		list = append(list, files.File{Name: name, Data: []byte(text)})
	}
	return files.New(list, nil)
}

func world() *facts.World {
	return &facts.World{KubeVersion: "v1.37.2-eks.1", APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment", "networking.k8s.io/v1"}}
}

// rendered is what one render gave.
type rendered struct {
	helm.Result
	reads []string
}

// all is the text of all files.
func (r rendered) all() string {
	var b strings.Builder
	for _, file := range r.Files {
		b.Write(file.Data)
	}
	return b.String()
}

func (r rendered) objects(t *testing.T) map[string]manifest.Object {
	t.Helper()
	crds, objects, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]manifest.Object{}
	for _, object := range append(crds, objects...) {
		named[object.Kind+" "+object.Name] = object
	}
	return named
}

// data is one value of a ConfigMap.
func (r rendered) data(t *testing.T, name, key string) string {
	t.Helper()
	data, ok := r.objects(t)["ConfigMap "+name].Content["data"].(map[string]any)
	if !ok {
		t.Fatalf("no ConfigMap %s in\n%s", name, r.all())
	}
	return fmt.Sprint(data[key])
}

func try(tree *files.Tree, change ...func(*helm.Options)) (rendered, error) {
	recorder := facts.NewRecorder(world())
	o := helm.Options{Tree: tree, Path: "app", ReleaseName: "rel", Namespace: "team", Facts: recorder}
	for _, c := range change {
		c(&o)
	}
	result, err := helm.Render(o)
	return rendered{Result: result, reads: recorder.Reads()}, err
}

func render(t *testing.T, tree texts, change ...func(*helm.Options)) rendered {
	t.Helper()
	result, err := try(tree.tree(), change...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func withValues(values ...map[string]any) func(*helm.Options) {
	return func(o *helm.Options) { o.Values = values }
}

func withFiles(names ...string) func(*helm.Options) {
	return func(o *helm.Options) { o.ValuesFiles = names }
}

// chart is one with a template and values.
func chart(template, values string) texts {
	return texts{"app/Chart.yaml": chartYAML, "app/values.yaml": values, "app/templates/a.yaml": template}
}

func TestTemplatesSeeTheReleaseAndNothingOfTheMachine(t *testing.T) {
	t.Setenv("CONVOY_TEST_SECRET", "leaked")
	tests := []struct{ name, template, want string }{
		{"the release", `{{ .Release | toJson }}`, `{"IsInstall":true,"IsUpgrade":false,"Name":"rel","Namespace":"team","Revision":1,"Service":"Helm"}`},
		{"the chart", `{{ .Chart.Name }} {{ .Chart.Version }} {{ .Chart.AppVersion }}`, "app 0.0.1 7"},
		{"the template", `{{ .Template.Name }} {{ .Template.BasePath }}`, "app/templates/a.yaml app/templates"},
		{"lookup finds nothing", `x: {{ lookup "v1" "Secret" "team" "x" | toJson }}`, "x: {}"},
		{"no host is looked up", `x{{ getHostByName "localhost" }}x`, "xx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.TrimSpace(render(t, chart(test.template, "")).all()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, function := range []string{`env "CONVOY_TEST_SECRET"`, `expandenv "$CONVOY_TEST_SECRET"`} {
		t.Run(function, func(t *testing.T) {
			if _, err := try(chart("{{ "+function+" }}", "").tree()); !errors.Is(err, helm.ErrTemplate) || !strings.Contains(err.Error(), "not defined") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatIsNoChartIsRefused(t *testing.T) {
	tests := []struct {
		name string
		tree texts
		want error
		text string
	}{
		{"nothing at the path", texts{"other/x": ""}, fs.ErrNotExist, "app"},
		{"no Chart.yaml", texts{"app/values.yaml": ""}, helm.ErrChart, "Chart.yaml file is missing"},
		{"a broken Chart.yaml", texts{"app/Chart.yaml": "a: ["}, helm.ErrChart, "Chart.yaml"},
		{"no version", texts{"app/Chart.yaml": "{apiVersion: v2, name: app}"}, helm.ErrChart, "version"},
		{"a library", texts{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0, type: library}"}, helm.ErrChart, "library chart"},
		{"a missing dependency", texts{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0, dependencies: [{name: db, version: 1.x.x, repository: 'https://charts.example.test'}]}"}, helm.ErrDependency, "db"},
		{"an empty dependency", texts{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0, dependencies: [null]}"}, helm.ErrChart, "app"},
		{"another Kubernetes", texts{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0, kubeVersion: '>=1.40.0-0'}"}, helm.ErrKubeVersion, "v1.37.2-eks.1"},
		{"a broken .helmignore", texts{"app/Chart.yaml": chartYAML, "app/.helmignore": "a/**"}, helm.ErrChart, "double-star"},
		{"a pointer of Git LFS", texts{"app/Chart.yaml": chartYAML, "app/x.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"}, files.ErrPointer, "app/x.bin"},
		{"a large file", texts{"app/Chart.yaml": chartYAML, "app/x.bin": strings.Repeat("x", helm.MaxChartFileBytes+1)}, helm.ErrTooLarge, "app/x.bin"},
		{"broken values", texts{"app/Chart.yaml": chartYAML, "app/values.yaml": "a: ["}, helm.ErrChart, "values.yaml"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(test.tree.tree())
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHelmignoreLeavesFilesAndFoldersOut(t *testing.T) {
	tree := chart("{{ range $name, $_ := .Files.Glob \"**\" }}{{ $name }} {{ end }}", "")
	tree["app/.helmignore"] = "# notes\n*.bak\nsecret/\n/only-here\n"
	for _, name := range []string{"keep.txt", "a.bak", "deep/b.bak", "secret/x/y", "only-here", "deep/only-here"} {
		tree["app/"+name] = "x"
	}
	want := ".helmignore deep/only-here keep.txt"
	if got := strings.TrimSpace(render(t, tree).all()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tree["app/templates/.hidden.yaml"] = "{{ fail \"rendered\" }}"
	render(t, tree)
}

func TestOnlyWhatATemplateAsksOfTheClusterIsRecorded(t *testing.T) {
	tests := []struct {
		name, template, want string
		reads                []string
	}{
		{"nothing", "x", "x", nil},
		{"the version", "{{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.GitVersion }} {{ .Capabilities.KubeVersion.Major }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.KubeVersion }}", "v1.37.2-eks.1 v1.37.2-eks.1 1 37 v1.37.2-eks.1", []string{"capabilities.kubeVersion"}},
		{"one API", `{{ .Capabilities.APIVersions.Has "apps/v1" }}`, "true", []string{"capabilities.api:apps/v1"}},
		{"one kind", `{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }} {{ .Capabilities.APIVersions.Has "apps/v2" }}`, "true false", []string{"capabilities.api:apps/v1/Deployment", "capabilities.api:apps/v2"}},
		{"an API that is not asked for", `{{ if false }}{{ .Capabilities.APIVersions.Has "x/v1" }}{{ end }}x`, "x", nil},
		{"the list", `{{ has "apps/v1" .Capabilities.APIVersions }} {{ len .Capabilities.APIVersions }}`, "true 4", []string{"capabilities.apis"}},
		{"the list and Has", `{{ $l := .Capabilities.APIVersions }}{{ $l.Has "v1" }}`, "true", []string{"capabilities.apis"}},
		{"a variable of that name", `{{ $someAPIVersions := list }}{{ len $someAPIVersions }}{{ .Capabilities.APIVersions.Has "v1" }}`, "0true", []string{"capabilities.api:v1"}},
		{"the list in parentheses", `{{ len ((.Capabilities).APIVersions) }}`, "4", []string{"capabilities.apis"}},
		{"all of it", `{{ (.Capabilities | toJson | fromJson).KubeVersion.Minor }}`, "37", []string{"capabilities.apis", "capabilities.kubeVersion"}},
		{"all of it in YAML", `{{ (.Capabilities | toYamlPretty | fromYaml) | len }}`, "3", []string{"capabilities.apis", "capabilities.kubeVersion"}},
		{"a copy", `{{ $c := deepCopy . }}{{ $c.Capabilities.APIVersions.Has "v1" }}`, "true", []string{"capabilities.api:v1"}},
		{"Helm's version", `{{ .Capabilities.HelmVersion.Version | hasPrefix "v3" }}`, "true", nil},
		{"through tpl", "{{ tpl \"{{ .Capabilities.KubeVersion.Minor }}\" . }}", "37", []string{"capabilities.kubeVersion"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result := render(t, chart(test.template, ""))
			if got := strings.TrimSpace(result.all()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(test.reads, result.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
	constrained := chart("x", "")
	constrained["app/Chart.yaml"] = "{apiVersion: v2, name: app, version: 1.0.0, kubeVersion: '>=1.20.0-0'}"
	if got := render(t, constrained).reads; !cmp.Equal(got, []string{"capabilities.kubeVersion"}) {
		t.Errorf("reads of a chart with kubeVersion: %v", got)
	}
}

func TestWhatIsRandomIsRecordedWhenItIsReallyAskedFor(t *testing.T) {
	const library = "{{ define \"password\" }}{{ if .Values.password }}{{ .Values.password }}{{ else }}{{ randAlphaNum 10 }}{{ end }}{{ end }}"
	tests := []struct {
		name   string
		tree   texts
		random bool
	}{
		{"nothing random", chart("x", ""), false},
		{"a random text", chart("{{ randAlphaNum 5 | quote }}", ""), true},
		{"a certificate", chart("{{ (genCA \"x\" 10).Cert | b64enc }}", ""), true},
		{"the time", chart("{{ now | unixEpoch }}", ""), true},
		{"at the end of a pipe", chart("{{ 5 | randAlphaNum }}", ""), true},
		{"in parentheses", chart("{{ .Values.x | default (uuidv4) }}", ""), true},
		{"a helper that asks", texts{"app/Chart.yaml": chartYAML, "app/templates/_h.tpl": library, "app/templates/a.yaml": "{{ include \"password\" . }}"}, true},
		{"a helper that need not ask", texts{"app/Chart.yaml": chartYAML, "app/values.yaml": "password: x", "app/templates/_h.tpl": library, "app/templates/a.yaml": "{{ include \"password\" . }}"}, false},
		{"a helper that nobody calls", texts{"app/Chart.yaml": chartYAML, "app/templates/_h.tpl": library, "app/templates/a.yaml": "x"}, false},
		{"a word that is no call", chart("now: date", "now: date\nx: '{{ .y }}'"), false},
		{"through tpl", chart("{{ tpl .Values.x . }}", "x: '{{ randAlphaNum 5 }}'"), true},
		{"through tpl of a constant", chart("{{ tpl \"{{ uuidv4 }}\" . }}", ""), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result := render(t, test.tree)
			if got := len(result.reads) == 1 && result.reads[0] == facts.Random; got != test.random {
				t.Errorf("reads %v, want random %t", result.reads, test.random)
			}
		})
	}
	// Looking for it changes nothing of what is rendered.
	tree := chart("{{ $_ := set .Values \"n\" (add1 (.Values.n | default 0)) }}n: {{ .Values.n }}\nr: {{ randNumeric 3 | len }}", "")
	if got := render(t, tree).all(); got != "n: 1\nr: 3\n" {
		t.Errorf("got %q", got)
	}
}

const withheld = "its words are withheld, since values come from a Secret"

func TestErrorsSayWhereAndRepeatNoSecret(t *testing.T) {
	const secret = "hunter2hunter2"
	tests := []struct {
		name, template string
		want           []string
	}{
		{"a broken template", "a\n{{ if }}", []string{"app/templates/a.yaml, line 2", "missing value for if"}},
		{"an unknown function", "{{ nothing }}", []string{"line 1", `function "nothing" not defined`}},
		{"a missing map", "\n\n{{ .Values.a.b.c }}", []string{"app/templates/a.yaml, line 3", "<.Values.a.b.c>", "nil pointer"}},
		{"what the chart says", `{{ fail "set a password" }}`, []string{"app/templates/a.yaml, line 1: fail or required: " + withheld}},
		{"what it requires", `{{ required "set .Values.p" .Values.p }}`, []string{"line 1: fail or required: " + withheld}},
		{"a secret in capitals in a message", `{{ fail (upper .Values.secret) }}`, []string{"line 1: fail or required: " + withheld}},
		{"a secret in capitals that is required", `{{ required (upper .Values.secret) .Values.p }}`, []string{"line 1: fail or required: " + withheld}},
		{"a secret in capitals in an error", "{{ .Values.secret | upper | mustToDate \"2006\" }}", []string{"line 1: at <mustToDate", "error calling mustToDate: " + withheld}},
		{"a secret in capitals that is a template", `{{ tpl (printf "{{ %s }}" (upper .Values.secret)) . }}`, []string{"line 1", withheld}},
		{"a secret in capitals as a field", `{{ tpl (printf "{{ .Values.%s.x.y }}" (upper .Values.secret)) . }}`, []string{"line 1 of a text given to tpl (from app/templates/a.yaml, line 1)"}},
		{"a secret in capitals as the name of a template", `{{ include (upper .Values.secret) . }}`, []string{"error calling include: " + withheld}},
		{"a helper", "\n{{ include \"helper\" . }}", []string{"app/templates/_h.tpl, line 2 (from app/templates/a.yaml, line 2)"}},
		{"a range over a secret", "{{ range .Values.secret }}{{ end }}", []string{"range can't iterate over"}},
		{"a secret that is no number", `{{ .Values.secret | mustToDate "2006" }}`, []string{"error calling mustToDate: " + withheld}},
		{"a secret in a message", `{{ fail (printf "bad password %s" .Values.secret) }}`, []string{withheld}},
		{"a secret in base64 in a message", `{{ fail (printf "bad %s" (b64enc .Values.secret)) }}`, []string{withheld}},
		{"a secret that is a template", "{{ tpl .Values.broken . }}", []string{"app/templates/a.yaml, line 1"}},
		{"a template in the values", "\n{{ tpl .Values.fails . }}", []string{"line 1 of a text given to tpl (from app/templates/a.yaml, line 2)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree := chart(test.template, "")
			tree["app/templates/_h.tpl"] = "{{ define \"helper\" }}\n{{ .Values.a.b.c }}{{ end }}"
			values := map[string]any{"secret": secret, "broken": "{{ " + secret, "fails": "{{ .Values." + secret + ".x.y }}"}
			_, err := try(tree.tree(), withValues(values), func(o *helm.Options) { o.Secrets = []string{secret} })
			if !errors.Is(err, helm.ErrTemplate) {
				t.Fatalf("got %v", err)
			}
			for _, want := range append(test.want, "chart app: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			if strings.Contains(strings.ToLower(err.Error()), secret) || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
	for template, want := range map[string]string{
		`{{ fail "set a password" }}`:              "line 1: set a password",
		`{{ required "set .Values.p" .Values.p }}`: "line 1: set .Values.p",
		`{{ "x" | mustToDate "2006" }}`:            "parsing ...",
	} {
		if _, err := try(chart(template, "").tree()); !errors.Is(err, helm.ErrTemplate) || !strings.Contains(err.Error(), want) {
			t.Errorf("without values of Secrets: got %v", err)
		}
	}
}
