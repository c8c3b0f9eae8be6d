// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

const serviceName = "v1alpha1.core.convoy.kumodo.io"

func apiService(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": serviceName}, "spec": spec,
	}}
}

func services(objects ...runtime.Object) (dynamic.ResourceInterface, *fake.FakeDynamicClient) {
	c := fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
	return c.Resource(APIServiceResource()), c
}

func bundleOf(t *testing.T, s dynamic.ResourceInterface) string {
	t.Helper()
	got, err := s.Get(t.Context(), serviceName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := unstructured.NestedString(got.Object, "spec", "caBundle")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTheHostComesToTrustTheServingCA(t *testing.T) {
	s, client := services(apiService(map[string]any{"group": "core.convoy.kumodo.io", "insecureSkipTLSVerify": true}))
	changed, err := EnsureCABundle(t.Context(), s, serviceName, []byte("PEM"))
	if err != nil || !changed {
		t.Fatalf("changed %t, error %v", changed, err)
	}
	if got := bundleOf(t, s); got != "PEM" {
		t.Errorf("caBundle %q, want PEM", got)
	}
	got, err := s.Get(t.Context(), serviceName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := unstructured.NestedBool(got.Object, "spec", "insecureSkipTLSVerify"); err != nil || found {
		t.Errorf("insecureSkipTLSVerify is still there (%v)", err)
	}

	before := len(client.Actions())
	changed, err = EnsureCABundle(t.Context(), s, serviceName, []byte("PEM"))
	if err != nil || changed {
		t.Errorf("the second time: changed %t, error %v", changed, err)
	}
	if n := len(client.Actions()) - before; n != 1 {
		t.Errorf("%d calls when there is nothing to do, want one read", n)
	}
}

func TestAnAPIServiceThatIsNotThereIsNotFound(t *testing.T) {
	s, _ := services()
	if _, err := EnsureCABundle(t.Context(), s, serviceName, []byte("PEM")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}

func TestTheCABundleIsWrittenSoonAfterTheAPIServiceAppears(t *testing.T) {
	s, _ := services()
	clk := clocktesting.NewFakeClock(time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- KeepCABundles(ctx, s, []string{serviceName}, []byte("PEM"), clk) }()

	waitForTimer(t, clk)
	if _, err := s.Create(t.Context(), apiService(map[string]any{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clk.Step(missingInterval)
	waitForTimer(t, clk) // the next round has ended
	if got := bundleOf(t, s); got != "PEM" {
		t.Errorf("caBundle %q, want PEM", got)
	}

	// Somebody changes it.
	if _, err := s.Update(t.Context(), apiService(map[string]any{"caBundle": "b3RoZXI="}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	clk.Step(keepInterval)
	waitForTimer(t, clk)
	if got := bundleOf(t, s); got != "PEM" {
		t.Errorf("caBundle %q after a change, want PEM again", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// waitForTimer returns when the code under test waits for the clock.
func waitForTimer(t *testing.T, clk *clocktesting.FakeClock) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !clk.HasWaiters() {
		select {
		case <-deadline:
			t.Fatal("nobody waits for the clock")
		case <-tick.C:
		}
	}
}
