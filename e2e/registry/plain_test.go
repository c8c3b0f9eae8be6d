// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"testing"

	"oras.land/oras-go/v2"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/helmrepo"
	source "kumodo.io/convoy/hub/source/registry"
	"kumodo.io/convoy/hub/source/registrytest"
)

// A range that is opened may have a registry without TLS: for a chart that is wanted
// itself, and for one that another chart depends on, with the credentials of its source.
func TestARegistryWithoutTLSServesChartsAndDependencies(t *testing.T) {
	t.Parallel()
	folder := fmt.Sprintf("charts-%d", repositories.Add(1))
	to := client(t, plain, folder+"/web")
	to.PlainHTTP = true
	push(t, to, "1.0.0", mediaChart, registrytest.Chart(t, "web", "1.0.0"), oras.PackManifestOptions{})
	remote := from(t, plain, folder)
	chart, err := helmrepo.Resolve(t.Context(), remote, "web", "^1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Fetch(t.Context(), source.Job{Remote: remote, Chart: &chart, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	snapshot := registrytest.Snapshot(t, []string{"app/Chart.yaml"}, map[string]string{
		"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n- {name: web, version: ^1, repository: \"oci://" + plain.Host + "/" + folder + "\"}\n",
	})
	for name, remotes := range map[string][]endpoint.Remote{"with a source's credentials": {remote}} {
		job := source.Job{
			Remote: endpoint.Remote{Policy: remote.Policy}, Dir: t.TempDir(),
			Dependencies: &source.Dependencies{Snapshot: snapshot, Path: "app", Remotes: remotes},
		}
		done, err := source.Fetch(t.Context(), job)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(done.Charts) != 1 || done.Charts[0].Name != "web" || done.Charts[0].Version != "1.0.0" {
			t.Errorf("%s: charts %+v", name, done.Charts)
		}
	}
}
