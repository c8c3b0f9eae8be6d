// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

const (
	corePath   = "/apis/core.convoy.kumodo.io/v1alpha1"
	sourcePath = "/apis/source.convoy.kumodo.io/v1alpha1"
	rulesPath  = "/apis/extensions.convoy.kumodo.io/v1alpha1"
)

// newClient is a typed client, as controllers and other programs use it.
func newClient(t testing.TB, s *apiservertest.Server, groups ...string) client.Client {
	t.Helper()
	sch := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, sourcev1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme} {
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

// answer is what came back of a raw request.
type answer struct {
	code    int
	header  http.Header
	body    string
	warning []string
}

// raw makes a plain HTTP request as an administrator, with pairs of header names
// and values.
func raw(t testing.TB, s *apiservertest.Server, method, path, body string, headers ...string) answer {
	t.Helper()
	return rawWith(t, s.Client(t), s.URL(), method, path, body, headers...)
}

func rawWith(t testing.TB, config *rest.Config, url, method, path, body string, headers ...string) answer {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{code: response.StatusCode, header: response.Header, body: string(text), warning: response.Header.Values("Warning")}
}

func newRelease(namespace, name, cluster string) *corev1alpha1.Release {
	return &corev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1alpha1.ReleaseSpec{
			ClusterRef: corev1alpha1.ClusterReference{Name: cluster},
			Source:     corev1alpha1.SourceReference{Kind: corev1alpha1.SourceKindGitRepository, Name: "app"},
		},
	}
}

func newCluster(namespace, name string) *corev1alpha1.Cluster {
	return &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func newGitRepository(namespace, name string) *sourcev1alpha1.GitRepository {
	return &sourcev1alpha1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       sourcev1alpha1.GitRepositorySpec{URL: "https://git.example/team/app.git"},
	}
}

func create(t testing.TB, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func get[T client.Object](t testing.TB, c client.Client, into T, namespace, name string) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatalf("get %T %s: %v", into, name, err)
	}
	return into
}

func itoa(i int) string { return strconv.Itoa(i) }

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }
