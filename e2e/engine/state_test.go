// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/agent/identity"
	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/state/statetest"
)

func stateNamespace(t testing.TB) string {
	t.Helper()
	name := "state-" + strings.ToLower(rand.Text()[:10])
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	if _, err := plane.Dynamic().Resource(namespaces).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

func newSecrets(t *testing.T, namespace string) *state.Secrets {
	t.Helper()
	s, err := state.NewSecrets(plane.RESTConfig(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecretsConform(t *testing.T) {
	t.Parallel()
	statetest.Conformance(t, func(t *testing.T) func() engine.State {
		t.Helper()
		namespace := stateNamespace(t)
		return func() engine.State { return newSecrets(t, namespace) }
	})
}

func TestALayerWithoutOneOfItsChunksIsNotStored(t *testing.T) {
	t.Parallel()
	namespace := stateNamespace(t)
	content := make([]byte, 2<<20)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	b := blobs{content: map[string][]byte{}}
	layer := b.put(content)
	s := newSecrets(t, namespace)
	from, err := b.Open(t.Context(), *layer, false, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutRender(t.Context(), layer.Digest, from); err != nil {
		t.Fatal(err)
	}
	list, err := plane.Dynamic().Resource(secrets).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "convoy.kumodo.io/state=render"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 5 {
		t.Errorf("%d chunks", len(list.Items))
	}
	if err := plane.Dynamic().Resource(secrets).Namespace(namespace).Delete(t.Context(), list.Items[0].GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, state := range []*state.Secrets{s, newSecrets(t, namespace)} {
		if _, err := state.OpenRender(t.Context(), layer.Digest); !errors.Is(err, engine.ErrNotStored) {
			t.Errorf("opened with %v", err)
		}
	}
}

func TestTheIdentityComesBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	namespace := stateNamespace(t)
	store := identity.New(newSecrets(t, namespace))
	if _, err := store.Load(ctx); !errors.Is(err, link.ErrNoIdentity) {
		t.Fatalf("loaded with %v", err)
	}
	for _, hub := range []string{"one", "two"} {
		want := &link.Identity{Hub: hub, ClusterUID: "c", BoundKey: []byte{1}, Certificate: []byte("cert")}
		if err := store.Save(ctx, want); err != nil {
			t.Fatal(err)
		}
		got, err := identity.New(newSecrets(t, namespace)).Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	token, err := identity.New(newSecrets(t, namespace)).JoinToken(ctx)
	if token != "" || err != nil {
		t.Errorf("token %q, %v", token, err)
	}
}
