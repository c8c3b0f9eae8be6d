// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func TestHE02NullsInValuesSurviveServerStorageAndCache(t *testing.T) {
	s := newStage(t)
	const values = `{"resources":null,"strategy":{"rollingUpdate":null,"type":"Recreate"}}`
	client, err := dynamic.NewForConfig(s.server.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"created", "applied"} {
		object := &unstructured.Unstructured{}
		text := `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"Release","metadata":{"namespace":"team","name":"` + way + `"},"spec":{"clusterRef":{"name":"edge"},"source":{"kind":"GitRepository","name":"apps"},"content":{"path":"app","helm":{"values":` + values + `}}}}`
		if err := json.Unmarshal([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		releases := client.Resource(corev1alpha1.SchemeGroupVersion.WithResource("releases")).Namespace("team")
		if way == "created" {
			_, err = releases.Create(t.Context(), object, metav1.CreateOptions{})
		} else {
			_, err = releases.Apply(t.Context(), way, object, metav1.ApplyOptions{FieldManager: "somebody"})
		}
		if err != nil {
			t.Fatal(err)
		}
		r := s.until(way, "the cache", func(r *corev1alpha1.Release) bool { return r != nil })
		if got := string(r.Spec.Content.Helm.Values.Raw); got != values {
			t.Errorf("%s: got %s", way, got)
		}
	}
}
