// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// yamlObject reads an object as the engine has it from the server.
func yamlObject(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// rendered reads an object as the engine has it from a render: with numbers as written.
func rendered(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return object
}

const leaveLive = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, theirs: x}
  managedFields:
  - manager: convoy
    operation: Apply
    fieldsV1:
      f:metadata: {f:labels: {f:app: {}, f:tier: {}}}
      f:spec:
        f:replicas: {}
        f:strategy: {f:rollingUpdate: {f:maxSurge: {}}}
        f:template:
          f:spec:
            f:containers:
              'k:{"name":"c"}': {.: {}, f:name: {}, f:image: {}, f:resources: {f:limits: {f:cpu: {}, f:memory: {}}}}
              'k:{"name":"d"}': {.: {}, f:name: {}, f:image: {}}
  - manager: vpa
    operation: Update
    fieldsV1:
      f:spec:
        f:template:
          f:spec:
            f:containers:
              'k:{"name":"c"}': {f:resources: {f:limits: {f:cpu: {}}, f:requests: {f:cpu: {}}}}
  - manager: injector
    operation: Apply
    fieldsV1:
      f:metadata: {f:labels: {f:theirs: {}}}
      f:spec:
        f:template:
          f:spec:
            f:containers:
              'k:{"name":"side"}': {.: {}, f:name: {}, f:image: {}}
spec:
  replicas: 6
  strategy: {rollingUpdate: {maxSurge: 2}}
  template:
    spec:
      containers:
      - {name: side, image: side:9}
      - {name: c, image: app:1, resources: {limits: {cpu: 900m, memory: 1Gi}, requests: {cpu: 5m}}}
      - {name: d, image: app:1}
`

func TestAnApplyLeavesAloneWhatIsLeftToOthers(t *testing.T) {
	content := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxSurge: 1}}
  template:
    spec:
      containers:
      - {name: c, image: app:2, resources: {limits: {cpu: 500m, memory: 1Gi}}}
      - {name: d, image: app:2}
      - {name: new, image: new:1, resources: {limits: {cpu: "1"}}}
`
	tests := []struct {
		name string
		rule tunnel.Ignore
		want string
	}{
		{
			name: "a field that only we own keeps the value that it has", rule: tunnel.Ignore{Pointers: []string{"/spec/replicas"}},
			want: strings.Replace(content, "replicas: 3", "replicas: 6", 1),
		},
		{
			name: "a field that somebody else owns too is given up, the rest of its parent stays", rule: tunnel.Ignore{Pointers: []string{"/spec/template/spec/containers/*/resources/limits/cpu"}},
			want: strings.Replace(content, "{cpu: 500m, memory: 1Gi}", "{memory: 1Gi}", 1),
		},
		{
			name: "an index counts in the list that is there, where an injector may stand first", rule: tunnel.Ignore{Pointers: []string{"/spec/template/spec/containers/1/image"}},
			want: strings.Replace(content, "{name: c, image: app:2", "{name: c, image: app:1", 1),
		},
		{
			name: "a parent that is left keeps all that is ours alone and gives up the rest", rule: tunnel.Ignore{Pointers: []string{"/spec/template/spec/containers/1/resources"}},
			want: strings.Replace(content, "{cpu: 500m, memory: 1Gi}", "{memory: 1Gi}", 1),
		},
		{
			name: "a manager's fields are given up", rule: tunnel.Ignore{Managers: []string{"vpa"}},
			want: strings.Replace(content, "{cpu: 500m, memory: 1Gi}", "{memory: 1Gi}", 1),
		},
		{
			name: "a new item is made whole", rule: tunnel.Ignore{Pointers: []string{"/spec/template/spec/containers/*/image"}},
			want: strings.NewReplacer("{name: c, image: app:2", "{name: c, image: app:1", "{name: d, image: app:2", "{name: d, image: app:1").Replace(content),
		},
		{
			name: "a map keeps its value", rule: tunnel.Ignore{Pointers: []string{"/spec/strategy"}},
			want: strings.Replace(content, "maxSurge: 1", "maxSurge: 2", 1),
		},
		{
			name: "a pointer to nothing changes nothing", rule: tunnel.Ignore{Pointers: []string{"/spec/none", "/spec/template/spec/containers/9/image"}},
			want: content,
		},
		{
			name: "the whole object is left as it is, its name not", rule: tunnel.Ignore{},
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 6
  strategy: {rollingUpdate: {maxSurge: 2}}
  template:
    spec:
      containers:
      - {name: c, image: app:1, resources: {limits: {memory: 1Gi}}}
      - {name: d, image: app:1}
`,
		},
	}
	id := manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "t", Name: "web"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, err := compileIgnores([]tunnel.Ignore{test.rule})
			if err != nil {
				t.Fatal(err)
			}
			live := yamlObject(t, leaveLive)
			got := rules.of(id, live).sparing(rendered(t, content), live)
			if diff := cmp.Diff(plain(rendered(t, test.want)), plain(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// plain turns numbers into one form.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, child := range v {
			out[k] = plain(child)
		}
		return out
	case []any:
		out := []any{}
		for _, child := range v {
			out = append(out, plain(child))
		}
		return out
	}
	return plainNumber(v)
}

func TestWithinAListThatIsOwnedWholeTheValuesThatAreThereAreFilledIn(t *testing.T) {
	live := yamlObject(t, leaveRoute)
	content := rendered(t, `
apiVersion: networking.example.test/v1
kind: Route
metadata: {name: r}
spec:
  http:
  - {to: stable-2, weight: 100}
  - {to: canary-2, weight: 0}
  - {to: new, weight: 0}
`)
	rules, err := compileIgnores([]tunnel.Ignore{{Kind: "Route", Pointers: []string{"/spec/http/*/weight"}}})
	if err != nil {
		t.Fatal(err)
	}
	id := manifest.Identity{Group: "networking.example.test", Kind: "Route", Name: "r"}
	got := rules.of(id, live).sparing(content, live)
	want := rendered(t, `
apiVersion: networking.example.test/v1
kind: Route
metadata: {name: r}
spec:
  http:
  - {to: stable-2, weight: 70}
  - {to: canary-2, weight: 30}
  - {to: new, weight: 0}
`)
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before, _ := project(live, rules.of(id, live))
	other := yamlObject(t, strings.Replace(leaveRoute, "weight: 70", "weight: 10", 1))
	after, _ := project(other, rules.of(id, other))
	if before != after {
		t.Error("a weight that is left to others moves the projection")
	}
	edited := yamlObject(t, strings.Replace(leaveRoute, "to: stable", "to: elsewhere", 1))
	if after, _ = project(edited, rules.of(id, edited)); before == after {
		t.Error("a target that is ours does not move the projection")
	}
}

const leaveRoute = `
apiVersion: networking.example.test/v1
kind: Route
metadata:
  name: r
  managedFields:
  - {manager: convoy, operation: Apply, fieldsV1: {f:spec: {f:http: {}}}}
spec:
  http:
  - {to: stable, weight: 70}
  - {to: canary, weight: 30}
`

func TestAProjectionLeavesOutWhatIsLeftToOthers(t *testing.T) {
	id := manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "t", Name: "web"}
	tests := []struct {
		name     string
		rule     tunnel.Ignore
		from, to string
		moves    bool
	}{
		{"the value of a field", tunnel.Ignore{Pointers: []string{"/spec/replicas"}}, "replicas: 6", "replicas: 9", false},
		{"that we own it", tunnel.Ignore{Pointers: []string{"/spec/replicas"}}, "        f:replicas: {}\n", "", false},
		{"another field", tunnel.Ignore{Pointers: []string{"/spec/replicas"}}, "maxSurge: 2", "maxSurge: 3", true},
		{"of an item of any index", tunnel.Ignore{Pointers: []string{"/spec/template/spec/containers/*/image"}}, "{name: d, image: app:1}", "{name: d, image: app:7}", false},
		{"of a manager", tunnel.Ignore{Managers: []string{"vpa"}}, "cpu: 900m", "cpu: 100m", false},
		{"not of another manager", tunnel.Ignore{Managers: []string{"injector"}}, "cpu: 900m", "cpu: 100m", true},
		{"of another kind", tunnel.Ignore{Kind: "StatefulSet", Pointers: []string{"/spec/replicas"}}, "replicas: 6", "replicas: 9", true},
		{"of another group", tunnel.Ignore{Group: "batch", Pointers: []string{"/spec/replicas"}}, "replicas: 6", "replicas: 9", true},
		{"where a condition holds", tunnel.Ignore{When: "object.metadata.labels.theirs == 'x'", Pointers: []string{"/spec/replicas"}}, "replicas: 6", "replicas: 9", false},
		{"not where it does not", tunnel.Ignore{When: "object.metadata.labels.theirs == 'y'", Pointers: []string{"/spec/replicas"}}, "replicas: 6", "replicas: 9", true},
		{"where a condition fails", tunnel.Ignore{When: "object.metadata.labels.none == 'y'", Pointers: []string{"/spec/replicas"}}, "replicas: 6", "replicas: 9", false},
		{"the whole object", tunnel.Ignore{Kind: "Deployment"}, "image: app:1, resources", "image: app:7, resources", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, err := compileIgnores([]tunnel.Ignore{test.rule})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(leaveLive, test.from, test.to, 1)
			if text == leaveLive {
				t.Fatal("nothing was changed")
			}
			live, changed := yamlObject(t, leaveLive), yamlObject(t, text)
			before, _ := project(live, rules.of(id, live))
			after, _ := project(changed, rules.of(id, changed))
			if (before != after) != test.moves {
				t.Errorf("the projection moved: %v, want %v", before != after, test.moves)
			}
		})
	}
}

func TestRulesThatCannotBeKeptToAreRefused(t *testing.T) {
	tests := []struct {
		name string
		rule tunnel.Ignore
		want string
	}{
		{"no pointer", tunnel.Ignore{Pointers: []string{"spec.replicas"}}, "is no JSON pointer"},
		{"no expression", tunnel.Ignore{When: "object."}, "when"},
		{"no condition", tunnel.Ignore{When: "'text'"}, "when"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := compileIgnores([]tunnel.Ignore{{Kind: "A"}, test.rule})
			if err == nil || !strings.Contains(err.Error(), "rule 2") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAConditionSeesNoValueOfASecret(t *testing.T) {
	rules, err := compileIgnores([]tunnel.Ignore{{When: "object.data.password == '***' && object.metadata.name == 's'", Pointers: []string{"/data/password"}}})
	if err != nil {
		t.Fatal(err)
	}
	live := yamlObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: aHVudGVy}}")
	if rules.of(manifest.Identity{Kind: "Secret", Name: "s"}, live).none() {
		t.Error("the condition did not hold")
	}
	if got, _ := follow(live, []string{"f:data", "f:password"}); got != "aHVudGVy" {
		t.Errorf("the object was changed: %v", got)
	}
}
