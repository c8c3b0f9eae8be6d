// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/keyset"
)

// newTestKeys are the keys of a hub that says what status holds.
func newTestKeys(t *testing.T, status *corev1alpha1.HubStatus) (*keys, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/core.convoy.kumodo.io/v1alpha1/hubs/convoy" {
			http.NotFound(w, r)
			return
		}
		write(w, http.StatusOK, corev1alpha1.Hub{
			TypeMeta:   metav1.TypeMeta{APIVersion: corev1alpha1.SchemeGroupVersion.String(), Kind: "Hub"},
			ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.HubName}, Status: *status,
		})
	}))
	t.Cleanup(server.Close)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &server.URL
	hub, err := newHub(flags)
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleClientset().CoreV1().Secrets(systemNamespace)
	for _, set := range keyset.Names() {
		data, err := keyset.Create(set, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: set}, Data: data}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	out := &bytes.Buffer{}
	return &keys{streams: genericiooptions.IOStreams{Out: out, ErrOut: out}, secrets: client, hub: hub}, out
}

func (k *keys) entries(t *testing.T, set string) []keyset.Entry {
	t.Helper()
	secret, err := k.get(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := keyset.List(set, secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestAKeyIsRetiredOnlyWhenNothingNeedsItAnyMore(t *testing.T) {
	for _, set := range []string{keyset.HubCA, keyset.OrderKey, keyset.SealingKey} {
		t.Run(set, func(t *testing.T) {
			status := &corev1alpha1.HubStatus{}
			k, out := newTestKeys(t, status)
			first := k.entries(t, set)[0].ID
			if err := k.rotate(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			current := k.entries(t, set)[0].ID
			if !strings.Contains(out.String(), current) || !strings.Contains(out.String(), "rollout restart") {
				t.Errorf("said:\n%s", out)
			}
			status.Keys = []corev1alpha1.HubKey{{Set: set, ID: first}}
			if err := k.retire(t.Context(), set, first); !errors.Is(err, errNotLoaded) {
				t.Errorf("before the restart: got %v, want %v", err, errNotLoaded)
			}
			status.Keys = []corev1alpha1.HubKey{{Set: set, ID: current}, {Set: set, ID: first, Old: true, InUse: 7}}
			if err := k.retire(t.Context(), set, first); !errors.Is(err, errInUse) || !strings.Contains(err.Error(), "by 7 ") {
				t.Errorf("while 7 need it: got %v, want %v", err, errInUse)
			}
			if got := k.entries(t, set); len(got) != 2 {
				t.Fatalf("keys after what was refused: %+v", got)
			}
			status.Keys[1].InUse = 0
			if err := k.retire(t.Context(), set, first); err != nil {
				t.Fatal(err)
			}
			if got := k.entries(t, set); len(got) != 1 || got[0].ID != current {
				t.Errorf("keys after the retirement: %+v", got)
			}
		})
	}
}

func TestAListOfKeysShowsNoneOfThem(t *testing.T) {
	k, out := newTestKeys(t, &corev1alpha1.HubStatus{})
	if err := k.rotate(t.Context(), keyset.OrderKey); err != nil {
		t.Fatal(err)
	}
	if err := k.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, set := range keyset.Names() {
		secret, err := k.get(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		for field, value := range secret.Data {
			encoded, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), string(value)) || strings.Contains(out.String(), strings.Trim(string(encoded), `"`)) {
				t.Errorf("%s of %s is shown", field, set)
			}
		}
	}
	if n := strings.Count(out.String(), keyset.OrderKey); n < 2 {
		t.Errorf("the old order key is not listed:\n%s", out)
	}
}
