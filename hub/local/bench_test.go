// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

const (
	hubID = "0123456789abcdef"
	// patience of a test.
	patience = 30 * time.Second
)

// target is the little of an API server that a probe and an idle engine ask for.
type target struct {
	*httptest.Server

	mu         sync.Mutex
	uid        string
	tokens     map[string]bool // accepted; guarded by mu
	seen       map[string]int  // requests by token
	redirect   string
	namespaces map[string]map[string]string // labels by name
	secrets    map[string]bool              // namespace/name
}

func newTarget(t testing.TB, uid string, tokens ...string) *target {
	t.Helper()
	s := &target{uid: uid, tokens: map[string]bool{}, seen: map[string]int{}, namespaces: map[string]map[string]string{}, secrets: map[string]bool{}}
	for _, token := range tokens {
		s.tokens[token] = true
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.seen[token]++
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			return // the client has gone
		}
	}
	fail := func(code int, reason metav1.StatusReason) {
		answer(code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: string(reason)})
	}
	switch path, ns := r.URL.Path, strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"); {
	case s.redirect != "":
		http.Redirect(w, r, s.redirect, http.StatusFound)
	case !s.tokens[token]:
		fail(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case path == "/version":
		answer(200, map[string]string{"gitVersion": "v1.37.2"})
	case path == "/apis":
		answer(200, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1"}}}}})
	case ns == "kube-system":
		answer(200, map[string]any{"metadata": map[string]string{"uid": s.uid}})
	case r.Method == http.MethodPost && path == "/api/v1/namespaces":
		var made struct{ Metadata metav1.ObjectMeta }
		if err := json.NewDecoder(r.Body).Decode(&made); err != nil {
			fail(400, metav1.StatusReasonBadRequest)
			return
		}
		s.namespaces[made.Metadata.Name] = made.Metadata.Labels
		answer(201, map[string]any{"metadata": made.Metadata})
	case strings.HasSuffix(path, "/secrets"):
		answer(200, map[string]any{"metadata": map[string]string{}, "items": []any{}})
	case strings.Contains(ns, "/secrets/"):
		namespace, name, _ := strings.Cut(ns, "/secrets/")
		if !s.secrets[namespace+"/"+name] {
			fail(404, metav1.StatusReasonNotFound)
			return
		}
		answer(200, map[string]any{"metadata": map[string]string{"name": name}})
	case path != ns && s.namespaces[ns] != nil:
		if r.Method == http.MethodPatch {
			s.namespaces[ns][labelHub] = hubID
		}
		answer(200, map[string]any{"metadata": map[string]any{"name": ns, "labels": s.namespaces[ns]}})
	default:
		fail(404, metav1.StatusReasonNotFound)
	}
}

func (s *target) accept(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	for _, token := range tokens {
		s.tokens[token] = true
	}
}

func (s *target) used(token string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[token]
}

// kubeconfig for the server, with a token.
func (s *target) kubeconfig(token string) []byte {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return []byte(kubeconfig("server: '"+s.URL+"', certificate-authority-data: "+ca, "token: "+token))
}

// world is all that a Manager sees.
type world struct {
	t       testing.TB
	manager *Manager
	stop    func()

	mu        sync.Mutex
	clusters  map[types.NamespacedName]*v1alpha1.Cluster
	secrets   map[string]map[string][]byte
	hostAway  bool
	writes    int
	connected int
	resets    []string
	changed   chan struct{}
}

var errHost = errors.New("the host does not answer")

func newWorld(t testing.TB, mods ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, clusters: map[types.NamespacedName]*v1alpha1.Cluster{}, secrets: map[string]map[string][]byte{}, changed: make(chan struct{})}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		HubID: hubID, OrderKeys: func() []ed25519.PublicKey { return []ed25519.PublicKey{public} },
		Clusters: w, Status: status{w}, Secrets: w, Orders: noOrders{private}, Blobs: nothing{}, Reports: nothing{},
		Resync: 50 * time.Millisecond, Registerer: prometheus.NewRegistry(),
	}
	for _, mod := range mods {
		mod(&o)
	}
	if w.manager, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context()) // ends in a cleanup
	if tt, ok := t.(*testing.T); ok {
		ctx = logr.NewContext(ctx, testr.NewWithOptions(tt, testr.Options{Verbosity: -1}))
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.manager.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

func agentless(name, secret string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.ClusterSpec{ConnectionMode: v1alpha1.ConnectionModeAgentless, Agentless: &v1alpha1.AgentlessConnection{
			Auth: v1alpha1.ClusterAuth{Type: v1alpha1.AuthTypeKubeconfig, Kubeconfig: &v1alpha1.KubeconfigAuth{
				SecretRef: v1alpha1.SecretKeyReference{Name: secret, Key: "kubeconfig"},
			}},
		}},
		Status: v1alpha1.ClusterStatus{CheckedSecrets: []string{secret}},
	}
}

func keyOf(c *v1alpha1.Cluster) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

func (w *world) put(c *v1alpha1.Cluster) {
	w.mu.Lock()
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
	old := w.clusters[key]
	w.clusters[key] = c
	w.tellLocked()
	w.mu.Unlock()
	w.manager.Changed(old, c)
}

func (w *world) remove(name string) {
	w.mu.Lock()
	key := types.NamespacedName{Namespace: "team", Name: name}
	old := w.clusters[key]
	delete(w.clusters, key)
	w.mu.Unlock()
	w.manager.Changed(old, nil)
}

func (w *world) secret(name string, kubeconfig []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kubeconfig == nil {
		delete(w.secrets, name)
		return
	}
	w.secrets[name] = map[string][]byte{"kubeconfig": kubeconfig}
}

func (w *world) tellLocked() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait until a Cluster is as wanted.
func (w *world) wait(name, what string, want func(*v1alpha1.Cluster) bool) *v1alpha1.Cluster {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		c, changed := w.clusters[types.NamespacedName{Namespace: "team", Name: name}], w.changed
		w.mu.Unlock()
		if c != nil && want(c) {
			return c
		}
		select {
		case <-changed:
		case <-deadline:
			w.t.Fatalf("Cluster %s never %s: %+v", name, what, c)
		}
	}
}

func (w *world) reachable(name string) *v1alpha1.Cluster {
	w.t.Helper()
	return w.wait(name, "reachable", func(c *v1alpha1.Cluster) bool { return c.Status.Reachable })
}

// begun waits until the first engine of all can be asked.
func (w *world) begun(name string) {
	w.t.Helper()
	w.reachable(name)
	w.eventually("an engine that can be asked", func() bool { _, connected := w.counted(); return connected == 1 })
}

// fails waits until a Cluster is not served for that reason.
func (w *world) fails(name, reason, says string) *v1alpha1.Cluster {
	w.t.Helper()
	return w.wait(name, reason+" "+says, func(c *v1alpha1.Cluster) bool {
		for _, ready := range c.Status.Conditions {
			if ready.Type == v1alpha1.ConditionReady && ready.Reason == reason && strings.Contains(ready.Message, says) {
				return !c.Status.Reachable
			}
		}
		return false
	})
}

// eventually polls what tells of no change.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("never: %s", what)
		}
	}
}

// Cluster implements Clusters.
func (w *world) Cluster(key types.NamespacedName) (*v1alpha1.Cluster, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.clusters[key]
	return c, ok
}

// Clusters implements Clusters.
func (w *world) Clusters() []*v1alpha1.Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.clusters))
}

// GetSecret implements Secrets.
func (w *world) GetSecret(_ context.Context, _, name string) (map[string][]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hostAway {
		return nil, errHost
	}
	data, ok := w.secrets[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoSecret, name)
	}
	return maps.Clone(data), nil
}

// status implements Status.
type status struct{ w *world }

func (s status) Cluster(_ context.Context, key types.NamespacedName, uid types.UID, mutate func(*v1alpha1.ClusterStatus) error) error {
	w := s.w
	w.mu.Lock()
	c := w.clusters[key]
	if c == nil || c.UID != uid {
		w.mu.Unlock()
		return errors.New("gone")
	}
	next := c.DeepCopy()
	if err := mutate(&next.Status); err != nil {
		w.mu.Unlock()
		return err
	}
	next.Status.ObservedGeneration = next.Generation
	w.writes++
	w.clusters[key] = next
	w.tellLocked()
	w.mu.Unlock()
	w.manager.Changed(c, next)
	return nil
}

func (s status) Connected(tunnel.ClusterID) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.connected++
}

func (s status) Reset(_ context.Context, cluster tunnel.ClusterID) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.resets = append(s.w.resets, cluster.Name)
	return nil
}

func (w *world) counted() (writes, connected int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.connected
}

// noOrders has an empty set for each Cluster.
type noOrders struct{ key ed25519.PrivateKey }

func (o noOrders) Current(cluster string) ([]tunnel.SignedOrder, tunnel.Signed, <-chan struct{}) {
	now := time.Now()
	head, err := tunnel.SignJSON(tunnel.TypeHead, tunnel.Head{
		Hub: hubID, ClusterUID: cluster, Hash: tunnel.HashOrders(nil), IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	}, o.key)
	if err != nil {
		return nil, tunnel.Signed{}, nil // a plain struct: cannot be
	}
	return nil, head, nil
}
func (noOrders) Allowed(string, string) (tunnel.Layer, bool, bool) {
	return tunnel.Layer{}, false, false
}
func (noOrders) Behind(string, map[string]int64) []string { return nil }

// nothing has no layers and takes no reports.
type nothing struct{}

func (nothing) Open(context.Context, string, bool) (io.ReadCloser, int64, error) {
	return io.NopCloser(bytes.NewReader(nil)), 0, nil
}
func (nothing) Observe(context.Context, tunnel.ClusterID, []tunnel.Report) tunnel.ReportsAnswer {
	return tunnel.ReportsAnswer{}
}
