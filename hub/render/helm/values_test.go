// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/helm"
)

func TestLaterValuesWin(t *testing.T) {
	tree := chart("{{ .Values | toJson }}", "a: chart\nb: chart\nc: chart\nd: chart\nlist: [1, 2]\nmap: {p: 1, q: 2}\n")
	tree["app/one.yaml"] = "b: one\nc: one\nd: one\nmap: {p: 10}\n"
	tree["shared/two.yaml"] = "c: two\nd: two\nlist: [3]\n"
	result := render(t, tree, withFiles("one.yaml", "../shared/two.yaml"),
		withValues(map[string]any{"d": "from", "map": map[string]any{"r": 3}}, map[string]any{"e": "inline", "map": map[string]any{"q": nil}}))
	want := `{"a":"chart","b":"one","c":"two","d":"from","e":"inline","list":[3],"map":{"p":10,"r":3}}`
	if got := strings.TrimSpace(result.all()); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestValuesThatCannotBeUsed(t *testing.T) {
	tree := chart("x", "")
	tree["app/broken.yaml"], tree["app/list.yaml"] = "a: [", "- a\n"
	tree["app/empty.yaml"] = ""
	tests := []struct {
		name string
		ask  func(*helm.Options)
		want error
		text string
	}{
		{"a missing file", withFiles("none.yaml"), fs.ErrNotExist, "app/none.yaml"},
		{"a file out of the source", withFiles("../../etc/passwd"), files.ErrOutside, "etc/passwd"},
		{"an absolute path", withFiles("/etc/passwd"), files.ErrOutside, "/etc/passwd"},
		{"a broken file", withFiles("broken.yaml"), helm.ErrValues, "broken.yaml"},
		{"a file that is a list", withFiles("list.yaml"), helm.ErrValues, "list.yaml"},
		{"a value of another type", withValues(map[string]any{"a": []any{struct{}{}}}), helm.ErrValues, "struct"},
		{"a number that is too large", withValues(map[string]any{"a": json.Number("1e999")}), helm.ErrValues, "too large"},
		{"a release name that is too long", func(o *helm.Options) { o.ReleaseName = strings.Repeat("x", 54) }, helm.ErrChart, "53 characters"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(tree.tree(), test.ask)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
	render(t, tree, withFiles("empty.yaml"))
}

func TestSubchartsAreChosenAndNamedAsChartYAMLSays(t *testing.T) {
	tree := texts{
		"app/Chart.yaml": `
apiVersion: v2
name: app
version: 1.0.0
dependencies:
- {name: db, version: 1.x.x, alias: primary, condition: primary.enabled}
- {name: db, version: 1.x.x, alias: replica, condition: replica.enabled, tags: [more]}
- {name: cache, version: "*", tags: [more], import-values: [limits, {child: settings, parent: cacheSettings}]}
`,
		"app/values.yaml":                "global: {domain: example.test}\nreplica: {enabled: false}\n",
		"app/templates/a.yaml":           "app: {{ .Values | toJson }}\n",
		"app/charts/db/Chart.yaml":       "{apiVersion: v2, name: db, version: 1.4.0}",
		"app/charts/db/values.yaml":      "enabled: true\nsize: 1\n",
		"app/charts/db/templates/a.yaml": "{{ .Chart.Name }}: {{ .Values.size }} {{ .Values.global.domain }}\n",
		"app/charts/cache/Chart.yaml":    "{apiVersion: v2, name: cache, version: 2.0.0}",
		"app/charts/cache/values.yaml":   "exports: {limits: {memory: 1Gi}}\nsettings: {ttl: 5}\n",
	}
	got := render(t, tree).all()
	for _, want := range []string{"primary: 1 example.test", `"memory":"1Gi"`, `"cacheSettings":{"ttl":5}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "replica: 1") {
		t.Errorf("a subchart that is off is there:\n%s", got)
	}
	got = render(t, tree, withValues(map[string]any{"replica": map[string]any{"enabled": true, "size": 9}, "tags": map[string]any{"more": false}})).all()
	if !strings.Contains(got, "replica: 9 example.test") || strings.Contains(got, "1Gi") {
		t.Errorf("condition before tag, and a tag that is off: got\n%s", got)
	}
}

func TestSchemasAreHeldAgainstValuesAndReadNothingElse(t *testing.T) {
	const secret = "hunter2hunter2"
	schema := `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["replicas"],"additionalProperties":true,
"properties":{"replicas":{"type":"integer","minimum":1},"mode":{"enum":["a","b"]},"password":{"type":"string","pattern":"^[0-9]+$"},"mail":{"type":"string","format":"email"}}}`
	tree := func(schema, values string) texts {
		made := chart("x", values)
		made["app/values.schema.json"] = schema
		return made
	}
	sub := tree(`{"type":"object"}`, "sub: {size: large}\nreplicas: 1")
	sub["app/charts/sub/Chart.yaml"] = "{apiVersion: v2, name: sub, version: 1.0.0}"
	sub["app/charts/sub/values.schema.json"] = `{"properties":{"size":{"type":"number"}}}`
	tests := []struct {
		name string
		tree texts
		want []string
	}{
		{"what fits", tree(schema, "replicas: 1\nmode: a"), nil},
		{"a missing value", tree(schema, "mode: a"), []string{"/: missing property 'replicas'"}},
		{"another type and another fault", tree(schema, "replicas: many\nmode: c"), []string{"/replicas: got string, want integer", "/mode: value must be one of 'a', 'b'"}},
		{"a pattern, without the value", tree(schema, "replicas: 1\npassword: "+secret), []string{"/password: does not match ^[0-9]+$"}},
		{"a format, without the value", tree(schema, "replicas: 1\nmail: "+secret), []string{"/mail: is not a valid email"}},
		{"one of a subchart", sub, []string{"/size of app/charts/sub: got string, want number"}},
		{"a broken schema", tree("{", ""), []string{"app/values.schema.json", "cannot be used"}},
		{"a reference to the network", tree(`{"$ref":"https://127.0.0.1:1/x.json"}`, ""), []string{"outside of itself"}},
		{"a reference to a file", tree(`{"$ref":"file:///etc/passwd"}`, ""), []string{"outside of itself"}},
		{"a reference to a file beside", tree(`{"$ref":"other.json"}`, ""), []string{"outside of itself"}},
		{"a reference inside", tree(`{"$defs":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, "a: x"), []string{"/a: got string, want number"}},
		{"a reference to itself for ever", tree(`{"$ref":"#"}`, "a: x"), []string{"app"}},
		{"a name without a place", tree(`{"properties":{"a":{"$ref":"urn:example:x"}}}`, "a: x"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(test.tree.tree())
			if test.want == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, helm.ErrSchema) {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("a value is repeated: %v", err)
			}
			if _, err := try(test.tree.tree(), func(o *helm.Options) { o.SkipSchema = true }); err != nil {
				t.Errorf("skipped, and still: %v", err)
			}
		})
	}
}

// FuzzMerge holds Merge to what it says: what is above wins, nothing is lost, and
// neither side is changed.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":1,"c":null}}`, `{"a":{"b":{"d":2}},"e":[1]}`)
	f.Add(`{"a":1}`, `{"a":{}}`)
	f.Fuzz(func(t *testing.T, under, over string) {
		var lower, upper map[string]any
		if json.Unmarshal([]byte(under), &lower) != nil || json.Unmarshal([]byte(over), &upper) != nil {
			return
		}
		before := []any{clone(lower), clone(upper)}
		merged := helm.Merge(lower, upper)
		if diff := cmp.Diff(before, []any{clone(lower), clone(upper)}); diff != "" {
			t.Errorf("its arguments changed: %s", diff)
		}
		for key, value := range upper {
			if _, isMap := value.(map[string]any); !isMap && !cmp.Equal(merged[key], value) {
				t.Errorf("%q is not what is above", key)
			}
		}
		for key := range lower {
			if _, there := merged[key]; !there {
				t.Errorf("%q is lost", key)
			}
		}
		if diff := cmp.Diff(merged, helm.Merge(merged, upper)); diff != "" {
			t.Errorf("twice is not once: %s", diff)
		}
	})
}

func clone(values map[string]any) map[string]any {
	copied := maps.Clone(values)
	for key, value := range copied {
		if inner, ok := value.(map[string]any); ok {
			copied[key] = clone(inner)
		}
	}
	return copied
}
