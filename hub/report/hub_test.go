// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is the part of a hub that a Reporter sees: stores that count writes, and
// a cache over them.
type hub struct {
	mu       sync.Mutex
	version  int
	objects  map[string]metav1.Object // "Kind namespace/name"
	writes   []string                 // "Kind name"
	failing  error
	done     []string
	refused  []string
	answers  map[types.UID]*tunnel.Report
	asked    []types.UID
	events   []string
	taken    []string
	last     map[types.UID]int64
	key      ed25519.PrivateKey
	reporter *Reporter

	meanwhile func() // called once, when a Cluster is about to be written
}

var edge = tunnel.ClusterID{Namespace: "team", Name: "edge", UID: "c1"}

func newHub() *hub {
	h := &hub{
		objects: map[string]metav1.Object{}, answers: map[types.UID]*tunnel.Report{},
		key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
	}
	h.reporter = New(Options{
		Releases: h, Clusters: h, Sources: h, Memory: h,
		ReleaseStore: table[*corev1alpha1.Release]{h, "Release"},
		ClusterStore: table[*corev1alpha1.Cluster]{h, "Cluster"},
		SourceStores: map[string]SourceStore{
			"GitRepository": SourceStatus(table[*sourcev1alpha1.GitRepository]{h, "GitRepository"}),
			"OCIRegistry":   SourceStatus(table[*sourcev1alpha1.OCIRegistry]{h, "OCIRegistry"}),
		},
		Inventories: table[*corev1alpha1.ReleaseInventory]{h, "Inventory"},
		Orders:      h, Agents: h, Recorder: h,
	})
	h.add("Cluster", &corev1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge", UID: "c1"},
		Status:     corev1alpha1.ClusterStatus{Reachable: true, Agent: &corev1alpha1.ClusterAgentStatus{BoundKey: "k"}},
	})
	return h
}

func (h *hub) add(kind string, o metav1.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	o.SetResourceVersion(strconv.Itoa(h.version))
	h.objects[kind+" "+o.GetNamespace()+"/"+o.GetName()] = o
}

func (h *hub) remove(kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.objects, kind+" team/"+name)
}

func lookup[T metav1.Object](h *hub, kind string, key types.NamespacedName) (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.objects[kind+" "+key.String()].(T)
	return o, ok
}

func (h *hub) Release(key types.NamespacedName) (*corev1alpha1.Release, bool) {
	return lookup[*corev1alpha1.Release](h, "Release", key)
}

func (h *hub) Cluster(key types.NamespacedName) (*corev1alpha1.Cluster, bool) {
	return lookup[*corev1alpha1.Cluster](h, "Cluster", key)
}

func (h *hub) ClusterByUID(uid types.UID) (*corev1alpha1.Cluster, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.objects {
		if c, ok := o.(*corev1alpha1.Cluster); ok && c.UID == uid {
			return c, true
		}
	}
	return nil, false
}

func (h *hub) Source(kind string, key types.NamespacedName) (sourcev1alpha1.Source, bool) {
	return lookup[sourcev1alpha1.Source](h, kind, key)
}

func (h *hub) releases() []*corev1alpha1.Release {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*corev1alpha1.Release
	for _, o := range h.objects {
		if r, ok := o.(*corev1alpha1.Release); ok {
			out = append(out, r)
		}
	}
	return out
}

func (h *hub) ReleaseByUID(uid types.UID) (*corev1alpha1.Release, bool) {
	for _, r := range h.releases() {
		if r.UID == uid {
			return r, true
		}
	}
	return nil, false
}

func (h *hub) ReleasesByCluster(key types.NamespacedName) []*corev1alpha1.Release {
	var out []*corev1alpha1.Release
	for _, r := range h.releases() {
		if r.Namespace == key.Namespace && r.Spec.ClusterRef.Name == key.Name {
			out = append(out, r)
		}
	}
	return out
}

func (h *hub) PutRelease(*corev1alpha1.Release) {}
func (h *hub) PutCluster(*corev1alpha1.Cluster) {}
func (h *hub) PutSource(sourcev1alpha1.Source)  {}
func (h *hub) Done(_ context.Context, cluster, release types.UID, sequence int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, fmt.Sprintf("%s %s %d", cluster, release, sequence))
	return nil
}

func (h *hub) Refused(_ context.Context, cluster, release types.UID, sequence int64, inventory []tunnel.InventoryEntry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = append(h.refused, fmt.Sprintf("%s %s %d with %d objects", cluster, release, sequence, len(inventory)))
	return nil
}

func (h *hub) LastOrder(release types.UID) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[release]
}

func (h *hub) Verify(signed tunnel.Signed) (tunnel.Order, error) {
	if err := tunnel.Verify(signed, tunnel.TypeOrder, []ed25519.PublicKey{h.key.Public().(ed25519.PublicKey)}); err != nil {
		return tunnel.Order{}, err
	}
	return tunnel.ParseOrder(signed.Payload)
}

func (h *hub) Taken(cluster types.UID, releases []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, release := range releases {
		h.taken = append(h.taken, string(cluster)+" "+release)
	}
}

func (h *hub) Newest(_ context.Context, _ tunnel.ClusterID, release types.UID) (*tunnel.Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, release)
	return h.answers[release], nil
}

func (h *hub) Transition(r *corev1alpha1.Release, warning bool, reason, _ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, fmt.Sprintf("%s %s warning=%v", r.Name, reason, warning))
}

func (h *hub) Warn(about About, reason, _ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, fmt.Sprintf("%s %s %s", about.Kind, about.Name, reason))
}

func (h *hub) questions() []types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// counted empties and returns the list of writes.
func (h *hub) counted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.writes
	h.writes = nil
	return out
}

// table is a registry's store over the hub's objects. Only what a Reporter
// calls is there.
type table[T copied[T]] struct {
	h    *hub
	kind string
}

func (t table[T]) notFound(key types.NamespacedName) error {
	return apierrors.NewNotFound(corev1alpha1.Resource(t.kind), key.Name)
}

func (t table[T]) Get(_ context.Context, key types.NamespacedName) (T, error) {
	o, ok := lookup[T](t.h, t.kind, key)
	if !ok {
		return o, t.notFound(key)
	}
	return o, nil
}

func (t table[T]) UpdateStatus(_ context.Context, key types.NamespacedName, _ types.UID, mutate func(T) error) (T, error) {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	if meanwhile := t.h.meanwhile; meanwhile != nil && t.kind == "Cluster" {
		t.h.meanwhile = nil
		t.h.mu.Unlock()
		meanwhile()
		t.h.mu.Lock()
	}
	var none T
	if t.h.failing != nil {
		return none, t.h.failing
	}
	old, ok := t.h.objects[t.kind+" "+key.String()].(T)
	if !ok {
		return none, t.notFound(key)
	}
	next := old.DeepCopy()
	if err := mutate(next); err != nil {
		return none, err
	}
	if !equality.Semantic.DeepEqual(old, next) {
		t.h.storeLocked(t.kind, next)
	}
	return next, nil
}

func (t table[T]) Put(ctx context.Context, key types.NamespacedName, create func() T, mutate func(T) error) (T, error) {
	next, err := t.UpdateStatus(ctx, key, "", mutate)
	if !apierrors.IsNotFound(err) {
		return next, err
	}
	next = create()
	next.SetNamespace(key.Namespace)
	next.SetName(key.Name)
	if err := mutate(next); err != nil {
		return next, err
	}
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	t.h.storeLocked(t.kind, next)
	return next, nil
}

func (t table[T]) Delete(_ context.Context, key types.NamespacedName, _ types.UID) error {
	t.h.remove(t.kind, key.Name)
	return nil
}

func (h *hub) storeLocked(kind string, o metav1.Object) {
	h.version++
	o.SetResourceVersion(strconv.Itoa(h.version))
	h.objects[kind+" "+o.GetNamespace()+"/"+o.GetName()] = o
	h.writes = append(h.writes, kind+" "+o.GetName())
}

// inside runs a test with a running Reporter under fake time.
func inside(t *testing.T, test func(t *testing.T, h *hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.reporter.Run(ctx) }()
		test(t, h)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.NewTimer(d).C }

const digest = "sha256:aa"

// order is what the controller would have signed.
func order(sequence int64) func(int64) (corev1alpha1.OrderStatus, error) {
	return func(int64) (corev1alpha1.OrderStatus, error) {
		payload, err := json.Marshal(tunnel.Order{Verb: tunnel.VerbApply, Sequence: sequence, Revision: "main@sha1:1", Objects: &tunnel.Layer{Digest: digest, Size: 1}})
		return corev1alpha1.OrderStatus{Sequence: sequence, Payload: string(payload)}, err
	}
}

// ordered adds a Release and hands in the outcome that orders it.
func (h *hub) ordered(t *testing.T, name string) types.NamespacedName {
	t.Helper()
	h.add("Release", &corev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       corev1alpha1.ReleaseSpec{ClusterRef: corev1alpha1.ClusterReference{Name: "edge"}},
	})
	key := types.NamespacedName{Namespace: "team", Name: name}
	err := h.reporter.Release(t.Context(), key, types.UID("uid-"+name), Outcome{
		Generation: 1, Rendered: rendered, Order: order(10),
		Render: &Render{SourceRevision: "main@sha1:1", InputsHash: "h", Status: corev1alpha1.RenderStatus{Objects: corev1alpha1.LayerReference{Digest: digest}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func report(name string, counter int64, change ...func(*tunnel.Report)) tunnel.Report {
	r := well(10)
	r.Release = tunnel.ReleaseRef{UID: "uid-" + name, Namespace: "team", Name: name}
	r.Counter, r.AppliedRef = counter, digest
	for _, c := range change {
		c(r)
	}
	return *r
}

func moving(r *tunnel.Report) {
	r.Settled = false
	r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "Progressing"}
}

func blocked(r *tunnel.Report) {
	r.Settled = false
	r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "Blocked", Message: "waits for Deployment team/web"}
}

func withInventory(r *tunnel.Report) {
	r.Inventory = []tunnel.InventoryEntry{{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a"}}
}

func ready(t *testing.T, h *hub, key types.NamespacedName) string {
	t.Helper()
	r, ok := h.Release(key)
	if !ok {
		t.Fatalf("%s is gone", key)
	}
	for _, c := range r.Status.Conditions {
		if c.Type == "Ready" {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
