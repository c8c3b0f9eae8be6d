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
)

func TestWhatCameInThroughASecretIsSealedWhereverItShows(t *testing.T) {
	const secret = "s3cr3t-w0rd"
	data := fmt.Sprintf("data: {plain: '%s', inside: 'a=%s;', base64: czNjcjN0LXcwcmQ=, raw: czNjcjN0LXcwcmQ, other: harmless, a/b: %s}", secret, secret, secret)
	j := job(func(j *content.Job) { j.Secrets = []string{secret + "\n", "short"} })
	result, err := content.Render(j, tree{"app/a.yaml": configMap("shop", data)}.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(slices.Values(result.Set.Objects[0].Sealed))
	if diff := cmp.Diff([]string{"/data/a~1b", "/data/base64", "/data/inside", "/data/plain", "/data/raw"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var out strings.Builder
	if _, err := result.Set.Write(&out, &strings.Builder{}, []byte("key"), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, secret) || strings.Contains(text, "czNjcjN0LXcwcmQ") {
		t.Errorf("it shows in %s", text)
	}
}

func TestANumberOfASecretIsRefusedByItsPlaceSinceItCannotBeSealed(t *testing.T) {
	j := job(func(j *content.Job) {
		j.Values = []content.Values{{Text: "pin: 12345678\nport: 8080\n", Secret: true}}
		j.Content.Helm = &v1alpha1.HelmContent{}
	})
	chart := tree{
		"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.0.1}\n",
		"app/templates/a.yaml": "apiVersion: example.test/v1\nkind: Lock\nmetadata: {name: shop}\nspec:\n  pin: {{ .Values.pin | int64 }}\n" +
			"  text: {{ .Values.pin | int64 | quote }}\n  port: {{ .Values.port | int64 }}\n",
	}
	_, err := content.Render(j, chart.files(), nil)
	if !errors.Is(err, content.ErrSecretNumber) || !strings.Contains(err.Error(), "Lock") || !strings.Contains(err.Error(), "spec.pin") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "12345678") || strings.Contains(err.Error(), "port") {
		t.Errorf("it says too much: %v", err)
	}
}

// written is the objects layer of a render.
func written(t *testing.T, result *content.Result) string {
	t.Helper()
	var out strings.Builder
	if _, err := result.Set.Write(&out, &strings.Builder{}, []byte("key"), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatAMutationCopiesOutOfASecretObjectIsSealed(t *testing.T) {
	const value, encoded = "PlainGitSecret99", "UGxhaW5HaXRTZWNyZXQ5OQ"
	object := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: " + value + "}\n"
	files := tree{"app/a.yaml": object, "app/b.yaml": configMap("c", "data: {copy: "+value+"}")}
	mutated := func(bodies ...string) content.Job {
		return job(func(j *content.Job) {
			j.Mutations = []content.Mutation{{Type: v1alpha1.MutationGoTemplate, Target: &v1alpha1.MutationTarget{Kind: "Secret"}, Bodies: bodies}}
		})
	}
	for name, bodies := range map[string][]string{
		"in clear":                        {`metadata: {annotations: {a: "{{ b64dec .object.data.password }}"}, labels: {a: "{{ b64dec .object.data.password }}"}}`},
		"in base64":                       {`metadata: {annotations: {a: "{{ .object.data.password }}"}}`},
		"inside of another text":          {`metadata: {annotations: {a: "x={{ b64dec .object.data.password }};{{ .object.data.password }}"}}`},
		"before it is replaced":           {`metadata: {annotations: {a: "{{ b64dec .object.data.password }}"}}`, `data: {password: null}`},
		"one that the mutation has made":  {`stringData: {password: null, other: "Other{{ .self.name }}Secret"}`, `metadata: {annotations: {a: "{{ b64dec .object.data.other }}"}}`},
		"a key that the author has given": {`metadata: {annotations: {a: b}}`},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := content.Render(mutated(bodies...), files.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			text := written(t, result)
			for _, value := range []string{value, encoded, "OthershopSecret"} {
				if strings.Contains(text, value) {
					t.Errorf("%s shows in %s", value, text)
				}
			}
		})
	}
	_, err := content.Render(mutated(`metadata: {annotations: "{{ dict (b64dec .object.data.password) .self.name }}"}`), files.files(), nil)
	if !errors.Is(err, content.ErrSecretKey) || !strings.Contains(err.Error(), "Secret s: metadata.annotations: ") || strings.Contains(err.Error(), value) {
		t.Errorf("as a key: %v", err)
	}
	result, err := content.Render(job(), files.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := written(t, result); strings.Count(text, value) != 1 {
		t.Errorf("what an author wrote in clear, without mutations: %s", text)
	}
}

func TestNamesOfWhatWasReadShowNoTextOfASecret(t *testing.T) {
	j := job(func(j *content.Job) {
		j.World.Cluster = map[string]string{"name": "edge-1"}
		j.Mutations = []content.Mutation{{Type: v1alpha1.MutationGoTemplate, Bodies: []string{`metadata: {annotations: {a: "{{ .cluster.name }}{{ hasKey .cluster (b64dec .object.data.password) }}"}}`}}}
	})
	result, err := content.Render(j, tree{"app/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: PlainGitSecret99}\n"}.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cluster.*"}, result.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFormsThatTemplatesGiveToTextsOfASecretAreSealed(t *testing.T) {
	const one, several = `p<a>s&s"w+o/r d'1é`, "first line of it\n  second \\ line\nend"
	chart := func(line string) tree {
		return tree{
			"app/Chart.yaml":       "{apiVersion: v2, name: app, version: 0.0.1}\n",
			"app/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata:\n  other: harmless\n  a: |-\n    x: " + line + "\n",
		}
	}
	secret := func(key, text string) content.Job {
		return job(func(j *content.Job) {
			j.Content.Helm = &v1alpha1.HelmContent{}
			j.Values = []content.Values{{Text: text, TargetPath: key, Secret: true}}
		})
	}
	for name, line := range map[string]string{
		"plain":                      "{{ .Values.one }}",
		"toJson":                     "{{ .Values.one | toJson }}",
		"toRawJson":                  "{{ .Values.one | toRawJson }}",
		"quote":                      "{{ .Values.one | quote }}",
		"html":                       "{{ .Values.one | html }}",
		"urlquery":                   "{{ .Values.one | urlquery }}",
		"a quoted word of YAML":      `'{{ .Values.one | replace "'" "''" }}'`,
		"b64enc in another text":     "{{ .Values.one | b64enc }}",
		"a map as JSON":              `{{ dict "k" .Values.one | toJson }}`,
		"lines, indented anew":       "|\n{{ .Values.several | indent 12 }}",
		"lines, as JSON":             "{{ .Values.several | toJson }}",
		"one of the lines":           `{{ index (splitList "\n" .Values.several) 0 }}`,
		"one of the lines, as JSON":  `{{ index (splitList "\n" .Values.several) 1 | toJson }}`,
		"JSON of it, as base64":      "{{ .Values.one | toJson | b64enc }}",
		"as part of a header":        `Basic {{ print "user:" .Values.one | b64enc }}`,
		"YAML of it in another text": `{{ dict "k" .Values.several | toYaml | nindent 8 }}`,
	} {
		t.Run(name, func(t *testing.T) {
			key, text := "one", one
			if strings.Contains(line, "several") {
				key, text = "several", several
			}
			result, err := content.Render(secret(key, text), chart(line).files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"/data/a"}, result.Set.Objects[0].Sealed); diff != "" {
				t.Errorf("%v (-want +got):\n%s", result.Set.Objects[0].Content["data"], diff)
			}
		})
	}
}

func TestFaultsOfRenderedTextsRepeatNoKeyWhereValuesCameOutOfASecret(t *testing.T) {
	for name, line := range map[string]string{
		"a key twice":         "  {{ upper .Values.word }}: a\n  {{ upper .Values.word }}: b",
		"a number":            "  {{ upper .Values.word }}: 1",
		"an alias of nothing": "  a: *{{ upper .Values.word }}",
		"a tag":               "  a: !{{ upper .Values.word }} x",
	} {
		t.Run(name, func(t *testing.T) {
			files := tree{
				"app/Chart.yaml":       "{apiVersion: v2, name: app, version: 0.0.1}\n",
				"app/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata:\n" + line + "\n",
			}
			j := job(func(j *content.Job) { j.Values = []content.Values{{Text: "word: wordofsecret", Secret: true}} })
			_, err := content.Render(j, files.files(), nil)
			if err == nil || !strings.Contains(err.Error(), "app/templates/a.yaml, document 1, line ") {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "WORD") {
				t.Errorf("it repeats the key: %v", err)
			}
		})
	}
}

func TestAKeyThatShowsATextOfASecretIsRefusedByItsPlace(t *testing.T) {
	chart := func(key string) tree {
		return tree{
			"app/Chart.yaml":       "{apiVersion: v2, name: app, version: 0.0.1}\n",
			"app/templates/a.yaml": "apiVersion: example.test/v1\nkind: Lock\nmetadata: {name: shop}\nspec:\n  inner:\n    {{ print " + key + " | quote }}: {a: b}\n",
		}
	}
	j := job(func(j *content.Job) {
		j.Content.Helm = &v1alpha1.HelmContent{}
		j.Values = []content.Values{{Text: "{long: KeyOfTwelveBytes, short: elevenBytes, topology: topology.kubernetes.io/zone}", Secret: true}}
	})
	for _, key := range []string{".Values.long", `"x." .Values.long ".y"`, "(b64enc .Values.long)"} {
		_, err := content.Render(j, chart(key).files(), nil)
		if !errors.Is(err, content.ErrSecretKey) || !strings.Contains(err.Error(), "Lock shop: spec.inner: ") {
			t.Errorf("%s: got %v", key, err)
		}
		if err != nil && (strings.Contains(err.Error(), "KeyOf") || strings.Contains(err.Error(), "S2V5")) {
			t.Errorf("it repeats the key: %v", err)
		}
	}
	for _, key := range []string{".Values.short", ".Values.topology"} {
		if _, err := content.Render(j, chart(key).files(), nil); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// The name of a database is that of an image too, and says nothing of the Secret.
func TestOrdinaryWordsOfASecretStayReadableWhereAFieldNamesThings(t *testing.T) {
	const pod = `apiVersion: v1
kind: Pod
metadata: {name: db, labels: {app: postgres, key: s3cr3t-w0rd}, annotations: {dsn: "postgres://app:postgres@db"}}
spec:
  hostname: postgres
  containers:
  - name: postgres
    image: registry.example.test/postgres:16
    args: [--user, postgres, --file=/etc/postgresql/x]
    env: [{name: POSTGRES_DB, value: postgres}, {name: s3cr3t-w0rd, value: harmless}]
  - {name: hard, image: "example/s3cr3t-w0rd:1"}
  nodeSelector: {role: postgres}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {name: postgres, image: "postgres:16", shop-database.conf: "a file"}
`
	j := job(func(j *content.Job) { j.Secrets = []string{"postgres", "s3cr3t-w0rd", "shop-database"} })
	result, err := content.Render(j, tree{"app/a.yaml": pod}.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for i := range result.Set.Objects {
		got[result.Set.Objects[i].Name] = slices.Sorted(slices.Values(result.Set.Objects[i].Sealed))
	}
	want := map[string][]string{
		"db": {
			"/metadata/annotations/dsn", "/metadata/labels/key", "/spec/containers/0/args/1", "/spec/containers/0/args/2",
			"/spec/containers/0/env/0/value", "/spec/containers/0/env/1/name", "/spec/containers/1/image",
		},
		"conf": {"/data/image", "/data/name"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sealed (-want +got):\n%s", diff)
	}
}
