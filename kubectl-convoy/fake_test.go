// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

const group = "/apis/core.convoy.kumodo.io/v1alpha1/namespaces/team-a"

// fakeHub answers like the hub does for namespace team-a.
type fakeHub struct {
	url string

	mu       sync.Mutex
	clusters map[string]bool
	joined   []corev1alpha1.JoinRequest
	answer   corev1alpha1.JoinRequestStatus
	synced   []corev1alpha1.SyncRequest
	// releases are the states that a watch shows one after the other; the first
	// is what a GET answers.
	releases []corev1alpha1.Release
	// problem, if set, is the answer to everything.
	problem http.HandlerFunc
}

func newFakeHub(t *testing.T) *fakeHub {
	t.Helper()
	expires := metav1.NewTime(time.Date(2026, 1, 1, 13, 0, 0, 0, time.UTC))
	hub := &fakeHub{
		clusters: map[string]bool{"edge-1": true},
		answer: corev1alpha1.JoinRequestStatus{
			ExpiresAt: &expires, GatewayURL: "wss://convoy.example", HubID: "0123456789abcdef",
			ClusterUID: "6d0b-uid", CAPin: "sha256:" + strings.Repeat("ab", 32), AgentImage: "convoy-agent:from-the-hub",
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+group+"/clusters", hub.createCluster)
	mux.HandleFunc("POST "+group+"/clusters/{name}/join", hub.join)
	mux.HandleFunc("POST "+group+"/releases/{name}/sync", hub.sync)
	mux.HandleFunc("GET "+group+"/releases/{name}", hub.release)
	mux.HandleFunc("GET "+group+"/releases", hub.watch)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hub.mu.Lock()
		problem := hub.problem
		hub.mu.Unlock()
		if problem != nil {
			problem(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	hub.url = server.URL
	return hub
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	write(w, int(status.Code), status)
}

func ofKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: corev1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

func decodeBody[T any](r *http.Request) T {
	var body T
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(err)
	}
	return body
}

func (h *fakeHub) createCluster(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cluster := decodeBody[corev1alpha1.Cluster](r)
	if h.clusters[cluster.Name] {
		fail(w, apierrors.NewAlreadyExists(corev1alpha1.Resource("clusters"), cluster.Name))
		return
	}
	h.clusters[cluster.Name] = true
	cluster.TypeMeta = ofKind("Cluster")
	write(w, http.StatusCreated, cluster)
}

func (h *fakeHub) join(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := r.PathValue("name")
	if !h.clusters[name] {
		fail(w, apierrors.NewNotFound(corev1alpha1.Resource("clusters"), name))
		return
	}
	request := decodeBody[corev1alpha1.JoinRequest](r)
	h.joined = append(h.joined, request)
	request.TypeMeta = ofKind("JoinRequest")
	request.Status = h.answer
	write(w, http.StatusCreated, request)
}

const requestedAt = "2026-01-01T12:00:00.000000001Z"

func (h *fakeHub) sync(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := r.PathValue("name")
	if len(h.releases) == 0 || h.releases[0].Name != name {
		fail(w, apierrors.NewNotFound(corev1alpha1.Resource("releases"), name))
		return
	}
	request := decodeBody[corev1alpha1.SyncRequest](r)
	h.synced = append(h.synced, request)
	request.TypeMeta = ofKind("SyncRequest")
	request.RequestedAt = requestedAt
	write(w, http.StatusCreated, request)
}

func (h *fakeHub) release(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	write(w, http.StatusOK, h.releases[0])
}

func (h *fakeHub) watch(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	states := h.releases[1:]
	h.mu.Unlock()
	if got := r.URL.Query().Get("fieldSelector"); got != "metadata.name=shop" {
		fail(w, apierrors.NewBadRequest(fmt.Sprintf("field selector %q", got)))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for _, state := range states {
		raw, err := json.Marshal(state)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", raw)
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	<-r.Context().Done()
}

// run runs the plugin as a person would, with a kubeconfig of its own.
func (h *fakeHub) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"hub",
		"contexts":[{"name":"hub","context":{"cluster":"hub","user":"me","namespace":"team-a"}}],
		"clusters":[{"name":"hub","cluster":{"server":%q}}],"users":[{"name":"me","user":{}}]}`, h.url)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems})
	command.SetArgs(append([]string{"--kubeconfig", kubeconfig}, args...))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = command.ExecuteContext(ctx)
	return out.String(), problems.String(), err
}

func (h *fakeHub) answerAll(problem http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problem = problem
}

// publicKey is what the hub was told, as a key.
func publicKey(t *testing.T, request corev1alpha1.JoinRequest) ed25519.PublicKey {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(request.Spec.PublicKey)
	if err != nil {
		t.Fatalf("public key: %v", err)
	}
	return raw
}

func forbidden(w http.ResponseWriter, _ *http.Request) {
	fail(w, apierrors.NewForbidden(schema.GroupResource{Group: corev1alpha1.GroupName, Resource: "clusters"}, "edge-1", fmt.Errorf("not for you")))
}
