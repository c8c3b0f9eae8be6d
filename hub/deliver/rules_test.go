// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestHealthRulesAreGivenToClustersWhoseOrdersNameThemAndToNoOther(t *testing.T) {
	f := newFixture(t)
	web := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web"}}
	order := func(rules *tunnel.Layer) {
		t.Helper()
		status, err := f.Issue(Intent{Release: web, ClusterUID: "c1", Objects: layer("a"), Terms: Terms{Rules: rules}})(web.Status.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		next := web.DeepCopy()
		next.Status.Order, next.Status.Sequence = &status, status.Sequence
		f.releases[web.UID] = next
		f.ReleaseChanged(web, next)
		web = next
	}
	order(layer("d"))
	if got, sealed, ok := f.Allowed("c1", layer("d").Digest); !ok || sealed || got != *layer("d") {
		t.Errorf("c1 asking for its rules: %v, sealed %v, %v", got, sealed, ok)
	}
	if _, _, ok := f.Allowed("c2", layer("d").Digest); ok {
		t.Error("c2 may have the rules of c1")
	}
	order(nil)
	if _, _, ok := f.Allowed("c1", layer("d").Digest); ok {
		t.Error("rules that are no longer ordered are still given")
	}
}
