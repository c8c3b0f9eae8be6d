// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/runtime"
	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func newClient(t *testing.T, s *apiservertest.Server, groups ...string) client.Client {
	t.Helper()
	sch := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, sourcev1alpha1.AddToScheme} {
		if err := add(sch); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(s.Client(t, groups...), client.Options{Scheme: sch})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServe(t *testing.T) {
	s := apiservertest.Start(t)
	c := newClient(t, s)
	r := &corev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r"}}
	r.Spec.ClusterRef.Name = "edge"
	r.Spec.Source.Kind = "GitRepository"
	r.Spec.Source.Name = "app"
	if err := c.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	got, err := s.Storage().Releases.Get(t.Context(), types.NamespacedName{Namespace: "a", Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
}
