// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/charts"
)

var update = flag.Bool("update", false, "write manifests/hub")

const (
	manifests = "../manifests/hub"
	licence   = "# SPDX-License-Identifier: Apache-2.0\n"
	origin    = "# Rendered from charts/convoy-hub by make generate: edit it there.\n"
)

// shipped is what manifests/hub has to hold, by path in it.
func shipped(t *testing.T) map[string]string {
	t.Helper()
	files, err := charts.Render(charts.Hub, map[string]any{"createNamespace": true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i, file := range files {
		text, found := strings.CutPrefix(string(file.Text), licence)
		if !found {
			t.Errorf("%s does not begin with the licence", file.Name)
		}
		files[i].Text = []byte(text)
		want[file.Name] = licence + origin + text
	}
	want[filepath.Join("overlays", "base", "hub.yaml")] = licence + origin + string(charts.Join(files))
	return want
}

func TestManifestsOfTheHubAreWhatTheChartRenders(t *testing.T) {
	want := shipped(t)
	if *update {
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(manifests, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := []string{filepath.Join("overlays", "base", "hub.yaml")}
	entries, err := os.ReadDir(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	got := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(manifests, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifests/hub is not current; edit charts/convoy-hub and run make generate (-rendered +committed):\n%s", diff)
	}
}

func text(t *testing.T, chart string, overrides map[string]any) string {
	t.Helper()
	files, err := charts.Render(chart, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return string(charts.Join(files))
}

func TestValuesReachTheObjects(t *testing.T) {
	tests := map[string]struct {
		chart  string
		values map[string]any
		want   []string
		not    []string
	}{
		"an external etcd": {
			chart:  charts.Hub,
			values: map[string]any{"etcd": map[string]any{"mode": "external", "servers": []any{"https://a:2379", "https://b:2379"}, "existingSecret": "etcd-client"}},
			want:   []string{"--etcd-servers=https://a:2379,https://b:2379\n", "--etcd-keyfile=", `secretName: "etcd-client"`, "port: 2379"},
			not:    []string{"--embedded-etcd"},
		},
		"Secrets of some namespaces only": {
			chart:  charts.Hub,
			values: map[string]any{"sources": map[string]any{"namespaces": []any{"team-a", "team-b"}}},
			want:   []string{`namespace: "team-a"`, `namespace: "team-b"`, "name: convoy-hub-references"},
			not:    []string{"This is the hub's\n  # widest right"},
		},
		"the hub's own host as a target": {
			chart: charts.Hub, values: map[string]any{"inCluster": true},
			want: []string{"name: convoy-hub-in-cluster"},
		},
		"no policies of the network": {
			chart: charts.Hub, values: map[string]any{"networkPolicy": map[string]any{"enabled": false}},
			not: []string{"NetworkPolicy"},
		},
		"a load balancer, more flags and names of Secrets for images": {
			chart: charts.Hub,
			values: map[string]any{
				"gateway":   map[string]any{"serviceType": "LoadBalancer", "annotations": map[string]any{"example.com/kind": "tcp"}},
				"extraArgs": []any{"--deletion-budget-count=50"}, "imagePullSecrets": []any{"pull"},
				"sources": map[string]any{"allowCIDRs": []any{"10.0.0.0/8"}},
			},
			want: []string{"type: LoadBalancer", `"example.com/kind": "tcp"`, `- "--deletion-budget-count=50"`, `- name: "pull"`, "--source-allow-cidr=10.0.0.0/8", "--gateway-url=wss://convoy.example.com"},
		},
		"a shared agent behind a proxy that already joined": {
			chart: charts.Agent,
			values: map[string]any{
				"profile": "shared", "namespaces": []any{"shop", "shop-jobs"},
				"proxy": map[string]any{"existingSecret": "proxy", "caConfigMap": "proxy-ca"},
			},
			want: []string{"--target-namespaces=shop,shop-jobs\n", "key: HTTPS_PROXY", "--outer-ca-file=/etc/convoy/proxy/ca.crt", `name: "proxy-ca"`},
			not:  []string{"cluster-admin", "convoy-join", "kind: Namespace\n"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := text(t, test.chart, test.values)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			for _, not := range test.not {
				if strings.Contains(got, not) {
					t.Errorf("%q must not be in\n%s", not, got)
				}
			}
		})
	}
}

func TestRenderingTwiceGivesTheSameAndLeavesTheDefaults(t *testing.T) {
	before := text(t, charts.Hub, nil)
	other := text(t, charts.Hub, map[string]any{"gateway": map[string]any{"url": "wss://elsewhere.example.com"}})
	if before == other {
		t.Error("a value changed nothing")
	}
	if after := text(t, charts.Hub, nil); before != after {
		t.Errorf("an override is still there:\n%s", cmp.Diff(before, after))
	}
}

func TestChartsHoldNoSecretsInTheirValues(t *testing.T) {
	for _, chart := range []string{charts.Hub, charts.Agent} {
		values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(values), "\n") {
			key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			lower := strings.ToLower(key)
			if strings.HasPrefix(key, "#") || lower == "existingsecret" || lower == "imagepullsecrets" || (chart == charts.Agent && lower == "token") {
				continue
			}
			if slices.ContainsFunc([]string{"secret", "password", "token", "key", "credential"}, func(word string) bool { return strings.Contains(lower, word) }) {
				t.Errorf("%s: value %s looks like a secret; name an existing Secret in its place", chart, key)
			}
		}
	}
}
