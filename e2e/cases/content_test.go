// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// data of a ConfigMap that has to be live.
func (p *played) data(name string) map[string]string {
	p.t.Helper()
	data, _, err := unstructured.NestedStringMap(p.live(p.targets[0], "ConfigMap", name).Object, "data")
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func TestHE02NullsOfAReleaseRemoveDefaultsThroughTheHub(t *testing.T) {
	t.Parallel()
	p := play(t, "HE-02", 5*time.Minute)
	p.step("v1")
	parent, child := p.data("parent"), p.data("child")
	if parent["has"] != "false" || strings.Contains(parent["strategy"], "rollingUpdate") {
		t.Errorf("parent %v", parent)
	}
	if strings.Contains(child["probe"], "httpGet") || !strings.Contains(child["probe"], "exec") || strings.Contains(child["tls"], "issuer") {
		t.Errorf("child %v", child)
	}
	release := p.status(p.targets[0], defaultRelease)
	if values := string(release.Spec.Content.Helm.Values.Raw); strings.Count(values, "null") != 3 {
		t.Errorf("values as they are read back: %s", values)
	}
	if made := release.Status.Render; made == nil || made.Provenance == nil || made.Provenance.Chart != "app" || made.Provenance.ChartVersion != "0.0.1" {
		t.Errorf("provenance %+v", made)
	}
}

func TestHE01NumbersAreThoseOfHelmHoweverTheyCame(t *testing.T) {
	t.Parallel()
	p := play(t, "HE-01", 5*time.Minute)
	p.step("a")
	numbers := p.data("numbers")
	for key, want := range map[string]string{"bare": "1e+06", "build": "2.0240131e+07", "fixed": "20240131", "long": "1234567890123", "kind": "float64", "same": "true", "text": "0123", "exp": "12e3"} {
		if numbers[key] != want {
			t.Errorf("%s is %s, want %s", key, numbers[key], want)
		}
	}
}

func TestKU04FoldersOfOneSourceAreReadAndNothingOutsideOfIt(t *testing.T) {
	t.Parallel()
	p := play(t, "KU-04", 8*time.Minute)
	p.step("fine")
	if data := p.data("base"); data["k"] != "v" {
		t.Errorf("base %v", data)
	}
	p.step("escape")
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		p.is(p.targets[0], name, corev1alpha1.ConditionRendered, "False", corev1alpha1.ReasonRenderFailed)
	}
}
