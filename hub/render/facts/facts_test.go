// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/render/facts"
)

func world() *facts.World {
	return &facts.World{
		Cluster: map[string]string{"name": "edge-1", "region": "eu"},
		Self: facts.Self{
			Name: "shop", Namespace: "team", TargetNamespace: "shop", UID: "u-1",
			Labels: map[string]string{"tier": "web"}, Annotations: map[string]string{"note": "x"},
		},
		KubeVersion: "v1.37.2", APIVersions: []string{"apps/v1", "v1", "networking.k8s.io/v1beta1", "networking.k8s.io/v1beta1/IPAddress"},
		Images: map[string]string{"nginx:1": "sha256:aa"}, Revision: "sha1:1",
	}
}

func TestFactsAreFoundByTheirNames(t *testing.T) {
	tests := []struct {
		name  string
		value string
		there bool
	}{
		{"cluster.region", "eu", true},
		{"cluster.name", "edge-1", true},
		{"cluster.zone", "", false},
		{"cluster.*", `{"name":"edge-1","region":"eu"}`, true},
		{"self.name", "shop", true},
		{"self.namespace", "team", true},
		{"self.targetNamespace", "shop", true},
		{"self.releaseName", "shop", true},
		{"image:*", "sha1:1", true},
		{"self.labels.tier", "web", true},
		{"self.labels.*", `{"tier":"web"}`, true},
		{"self.annotations.note", "x", true},
		{"self.annotations.none", "", false},
		{"capabilities.kubeVersion", "v1.37.2", true},
		{"capabilities.api:apps/v1", "served", true},
		{"capabilities.api:apps/v1/Deployment", "served", true},
		{"capabilities.api:apps/v2", "", false},
		{"capabilities.api:networking.k8s.io/v1beta1/IPAddress", "served", true},
		{"capabilities.api:networking.k8s.io/v1beta1/Ingress", "", false},
		{"image:nginx:1", "sha256:aa", true},
		{"image:nginx:2", "", false},
		{"random", "u-1", true},
		{"something else", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			value, there := world().Value(test.name)
			if value != test.value || there != test.there {
				t.Errorf("got %q, %t", value, there)
			}
		})
	}
}

func TestOnlyWhatWasAskedIsRemembered(t *testing.T) {
	tests := []struct {
		name string
		ask  func(facts.Facts)
		want []string
	}{
		{"nothing", func(facts.Facts) {}, nil},
		{"a key that is not there counts too", func(f facts.Facts) { f.Read("cluster.zone") }, []string{"cluster.zone"}},
		{"each once", func(f facts.Facts) { f.Read("cluster.region"); f.Read("cluster.region") }, []string{"cluster.region"}},
		{"a whole class covers its keys", func(f facts.Facts) {
			f.Read("cluster.region")
			f.All(facts.Cluster)
			f.Read("self.labels.tier")
		}, []string{"cluster.*", "self.labels.tier"}},
		{"the list of all that is served covers each", func(f facts.Facts) { f.Read("capabilities.api:v1"); f.All(facts.APIs) }, []string{"capabilities.apis"}},
		{"what is random is noted", func(f facts.Facts) { f.Note(facts.Random) }, []string{"random"}},
		{"very many of a class are the class", func(f facts.Facts) {
			for i := range 200 {
				f.Read(fmt.Sprintf("cluster.k%d", i))
			}
			f.Read("capabilities.kubeVersion")
		}, []string{"capabilities.kubeVersion", "cluster.*"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			recorder := facts.NewRecorder(world())
			test.ask(recorder)
			if diff := cmp.Diff(test.want, recorder.Reads()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClassThatIsGivenIsTheCallersOwn(t *testing.T) {
	made := world()
	recorder := facts.NewRecorder(made)
	recorder.All(facts.Cluster)["region"] = "changed"
	if value, _ := made.Value("cluster.region"); value != "eu" {
		t.Errorf("got %q", value)
	}
	if list := recorder.All(facts.APIs); list["apps/v1"] == "" {
		t.Errorf("got %v", list)
	}
}
