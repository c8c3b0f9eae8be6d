// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// rulesOfThePage reads the example of docs/spec/release.md.
func rulesOfThePage(t *testing.T) ignoreRules {
	t.Helper()
	raw, err := os.ReadFile("../../docs/spec/release.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "### Drift and `drift.ignore`")
	_, rest, opened := strings.Cut(rest, "```yaml\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !opened || !closed {
		t.Fatal("the page has no example of drift.ignore")
	}
	var release v1alpha1.Release
	if err := yaml.UnmarshalStrict([]byte(block), &release); err != nil {
		t.Fatal(err)
	}
	var given []tunnel.Ignore
	for _, rule := range release.Spec.Drift.Ignore {
		given = append(given, tunnel.Ignore(rule))
	}
	rules, err := compileIgnores(given)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestTheExamplesOfThePageLeaveWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	rules := rulesOfThePage(t)
	const head = "managedFields: [{manager: convoy, operation: Apply, fieldsV1: "
	tests := []struct {
		name, object string
		from, to     string // of a value that is left
		ours, edited string // of one that is not
	}{
		{
			name: "resources of any container",
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, " + head + `{f:spec: {f:paused: {}, f:template: {f:spec: {f:containers: {'k:{"name":"c"}': {f:resources: {f:limits: {f:cpu: {}}}}}}}}}}]},` +
				" spec: {paused: true, template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1m}}}]}}}}",
			from: "cpu: 1m", to: "cpu: 2m", ours: "paused: true", edited: "paused: false",
		},
		{
			name: "bundles of webhooks",
			object: "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w, " + head +
				`{f:webhooks: {'k:{"name":"a"}': {f:clientConfig: {f:caBundle: {}, f:url: {}}}}}}]}, webhooks: [{name: a, clientConfig: {caBundle: AA, url: here}}]}`,
			from: "caBundle: AA", to: "caBundle: BB", ours: "url: here", edited: "url: there",
		},
		{
			name: "fields of a manager",
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, " + head + "{f:spec: {f:paused: {}, f:minReadySeconds: {}}}}," +
				" {manager: vpa-admission, operation: Update, fieldsV1: {f:spec: {f:minReadySeconds: {}}}}]}, spec: {paused: true, minReadySeconds: 1}}",
			from: "minReadySeconds: 1", to: "minReadySeconds: 2", ours: "paused: true", edited: "paused: false",
		},
		{
			name: "weights where a label says so, in a list that is owned whole",
			object: "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: v, labels: {canary: x}, " + head +
				"{f:spec: {f:http: {}}}}]}, spec: {http: [{route: [{host: a, weight: 1}, {host: b, weight: 99}]}]}}",
			from: "weight: 99", to: "weight: 50", ours: "host: b", edited: "host: c",
		},
		{
			name:   "an object altogether",
			object: "{apiVersion: v1, kind: Secret, metadata: {name: generated, " + head + "{f:data: {f:a: {}}}}]}, data: {a: AA}}",
			from:   "a: AA", to: "a: BB",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			hash := func(from, to string) projection {
				changed := strings.Replace(test.object, from, to, 1)
				if changed == test.object && from != "" {
					t.Fatalf("%s is not in the object", from)
				}
				live := yamlObject(t, changed)
				group, _ := manifest.GroupVersion(text(live["apiVersion"]))
				id := manifest.Identity{Group: group, Kind: text(live["kind"]), Name: metaText(live, "name")}
				p, ok := project(live, rules.of(id, live))
				if !ok {
					t.Fatal("nothing is ours")
				}
				return p
			}
			if hash("", "") != hash(test.from, test.to) {
				t.Errorf("%s moves the hash", test.from)
			}
			if test.ours != "" && hash("", "") == hash(test.ours, test.edited) {
				t.Errorf("%s does not move the hash", test.ours)
			}
		})
	}
}
