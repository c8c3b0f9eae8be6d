// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// objects decodes documents and names each object by kind, namespace and name.
func objects(t *testing.T, into map[string]map[string]any, text string) {
	t.Helper()
	reader := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := map[string]any{}
		err := reader.Decode(&object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(object) == 0 {
			continue
		}
		metadata, ok := object["metadata"].(map[string]any)
		if !ok {
			t.Fatalf("an object without metadata: %v", object)
		}
		name := fmt.Sprintf("%v %v/%v", object["kind"], metadata["namespace"], metadata["name"])
		if into[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		into[name] = object
	}
}

// committed reads the objects of files.
func committed(t *testing.T, patterns ...string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects(t, all, string(text))
		}
	}
	return all
}

// helm renders a chart as helm install would, the schema of its values checked.
func helm(t *testing.T, name, namespace string, values map[string]any) (map[string]map[string]any, error) {
	t.Helper()
	chart, err := loader.Load(filepath.Join(root, "charts", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Errorf("the chart is not valid: %v", err)
	}
	rendered, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{
		Name: name, Namespace: namespace, Revision: 1, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, rendered)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]any{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, ".yaml") {
			objects(t, all, files[file])
		}
	}
	return all, nil
}

func mustHelm(t *testing.T, name, namespace string, values map[string]any) map[string]map[string]any {
	t.Helper()
	all, err := helm(t, name, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same compares object by object, so that a difference is short.
func same(t *testing.T, what string, want, got map[string]map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s, %s (-manifests +rendered):\n%s", what, name, diff)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == nil {
			t.Errorf("%s: %s is not in the manifests", what, name)
		}
	}
}

func TestHelmMakesOfTheHubsChartWhatTheManifestsHave(t *testing.T) {
	want := committed(t, "manifests/hub/*.yaml")
	same(t, "with the namespace", want, mustHelm(t, "convoy-hub", "convoy-system", map[string]any{"createNamespace": true}))
	// helm install has made the namespace, or a person has.
	delete(want, "Namespace <nil>/convoy-system")
	same(t, "default values", want, mustHelm(t, "convoy-hub", "convoy-system", nil))
}

func TestHelmMakesOfTheAgentsChartWhatThePluginPrints(t *testing.T) {
	for _, file := range []string{"platform.yaml", "shared.yaml"} {
		want := committed(t, "manifests/agent/"+file)
		values := map[string]any{
			"cluster": map[string]any{"namespace": "team-a", "name": "edge-1"}, "hubID": "0123456789abcdef",
			"join": map[string]any{"token": "convoy-join.printed-by-kubectl-convoy-join", "expiresAt": "2026-01-01T13:00:00Z"},
		}
		if file == "shared.yaml" {
			values["profile"], values["namespaces"] = "shared", []any{"shop", "shop-jobs"}
		}
		without := maps.Clone(want)
		delete(without, "Namespace <nil>/convoy-agent")
		same(t, file, without, mustHelm(t, "convoy-agent", "convoy-agent", values))
		values["createNamespace"] = true
		same(t, file+" with the namespace", want, mustHelm(t, "convoy-agent", "convoy-agent", values))
	}
}

func TestOverlaysAreWhatTheChartRendersWithTheSameWishes(t *testing.T) {
	for overlay, values := range map[string]map[string]any{
		"base":          {},
		"external-etcd": {"etcd": map[string]any{"mode": "external"}},
		"in-cluster":    {"inCluster": true},
	} {
		t.Run(overlay, func(t *testing.T) {
			values["createNamespace"] = true
			resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
				Run(filesys.MakeFsOnDisk(), filepath.Join(root, "manifests", "hub", "overlays", overlay))
			if err != nil {
				t.Fatal(err)
			}
			text, err := resources.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]any{}
			objects(t, got, string(text))
			want := mustHelm(t, "convoy-hub", "convoy-system", values)
			for name, object := range want {
				for _, object := range []map[string]any{object, got[name]} {
					sortLists(object)
				}
			}
			same(t, overlay, want, got)
		})
	}
}

// sortLists puts lists whose order says nothing, and which a patch orders in its own
// way, into one order.
func sortLists(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			sortLists(below)
			if list, ok := below.([]any); ok && (key == "volumes" || key == "volumeMounts") {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case []any:
		for _, below := range value {
			sortLists(below)
		}
	}
}

func TestSchemasRefuseValuesThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct{ chart, values string }{
		"a misspelt value":                    {"convoy-hub", `{gatewayURL: "wss://a.example.com"}`},
		"a gateway that agents cannot dial":   {"convoy-hub", `{gateway: {url: "https://a.example.com"}}`},
		"an etcd without TLS":                 {"convoy-hub", `{etcd: {mode: external, servers: ["http://a:2379"]}}`},
		"a password":                          {"convoy-hub", `{etcd: {password: x}}`},
		"no egress at all":                    {"convoy-hub", `{networkPolicy: {egressPorts: []}}`},
		"a shared agent without namespaces":   {"convoy-agent", `{profile: shared}`},
		"a platform agent with namespaces":    {"convoy-agent", `{namespaces: [shop]}`},
		"a token that is none":                {"convoy-agent", `{join: {token: "secret"}}`},
		"a name that would end its comment":   {"convoy-agent", `{cluster: {name: "a\nb: c"}}`},
		"a proxy's password in place of name": {"convoy-agent", `{proxy: {existingSecret: "http://user:pass@proxy"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
			if _, err := helm(t, test.chart, test.chart, values); err == nil {
				t.Error("the schema says nothing against it")
			}
		})
	}
}
