// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/tunnel"
)

const (
	hubID      = "0123456789abcdef"
	clusterUID = "c0ffee00-0000-0000-0000-000000000001"
	// patience of a test with the cluster, limit of one test, and of what all share. The
	// machine may be slow and busy; no test is about speed.
	patience = 3 * time.Minute
	limit    = 10 * time.Minute
	setup    = 15 * time.Minute
)

// plane is the control plane that all tests of one mode share; each has namespaces
// of its own. This is the one of what is not run in modes.
var plane *harness.Plane

func TestMain(m *testing.M) { os.Exit(run(m)) }

// parallel tests at once, unless -parallel says otherwise: they wait for control
// planes more than they compute.
const parallel = "6"

func run(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", parallel); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	modes := []string{direct, agentless, inCluster}
	var options []harness.Options
	for _, mode := range modes {
		options = append(options, harness.Options{Name: mode, UnsafeNoFsync: true})
	}
	all, err := harness.StartAll(ctx, options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start control planes:", err)
		return 1
	}
	for i, mode := range modes {
		planes[mode] = all[i]
	}
	plane = planes[direct]
	code := 1
	if err := deployerRole(ctx, planes[inCluster]); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	for _, p := range all {
		if err := p.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop a control plane:", err)
			code = 1
		}
	}
	return code
}

// bench is one engine on the plane of its mode, with hand-made orders.
type bench struct {
	t      testing.TB
	mode   string
	plane  *harness.Plane
	room   *room // of the modes that run in a hub
	ctx    context.Context
	config *rest.Config
	hub    string
	// namespaces that the engine is bound to; nil: none.
	namespaces []string
	state      engine.State
	open       func() engine.State // the state as it is after a restart
	again      chan struct{}       // closed when an engine was started again
	blobs      *blobs
	calls      *counter
	log        logr.Logger
	mu         sync.Mutex
	latest     map[string]tunnel.Report
	all        []tunnel.Report
	changed    chan struct{}
	runner     *engine.Runner
	stop       context.CancelFunc
	ended      chan error
	seq        atomic.Int64
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := newIdleBench(t)
	b.start()
	return b
}

func newIdleBench(t testing.TB) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	mode := modeOf(t)
	config := planes[mode].RESTConfig()
	config.UserAgent = "convoy-engine-test"
	b := &bench{
		t: t, ctx: ctx, mode: mode, plane: planes[mode], config: config, hub: hubID, state: state.NewMemory(),
		blobs: &blobs{content: map[string][]byte{}}, calls: &counter{}, again: make(chan struct{}),
		latest: map[string]tunnel.Report{}, changed: make(chan struct{}, 1),
		log: logr.Discard(),
	}
	if tt, ok := t.(*testing.T); ok {
		b.log = testr.NewWithOptions(tt, testr.Options{Verbosity: 1})
	}
	if mode != direct {
		b.room = newRoom(b, "engine-state-"+strings.ToLower(crand.Text()[:10]))
		b.calls.only = b.room.counted
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return b.calls.around(next) })
	b.seq.Store(time.Now().UnixMilli())
	t.Cleanup(b.halt)
	return b
}

// start runs an engine on what the state has.
func (b *bench) start() {
	b.t.Helper()
	if b.room != nil {
		b.stop, b.ended = b.room.start()
		return
	}
	if b.state == nil {
		b.state = b.open()
	}
	runner, err := engine.New(engine.Options{
		Config: b.config, HubID: b.hub, ClusterUID: clusterUID, State: b.state, Blobs: b.blobs,
		Report: b.take, Logger: b.log, Namespaces: b.namespaces,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.runner, b.stop, b.ended = runner, cancel, make(chan error, 1)
	ended := b.ended
	go func() { ended <- runner.Run(ctx) }()
}

// halt ends the engine, as a kill would: what was under way is cut off.
func (b *bench) halt() {
	if b.stop == nil {
		return
	}
	b.stop()
	b.stop = nil
	if err := <-b.ended; err != nil {
		b.t.Errorf("the engine ended with %v", err)
	}
}

// secretState keeps the state in Secrets of a namespace, as an agent does.
func (b *bench) secretState() {
	b.t.Helper()
	namespace := stateNamespace(b.t)
	b.open = func() engine.State {
		s, err := state.NewSecrets(b.config, namespace)
		if err != nil {
			b.t.Fatal(err)
		}
		return s
	}
	b.state = nil
}

// restart starts an engine anew after it was killed.
func (b *bench) restart() {
	b.t.Helper()
	b.halt()
	b.mu.Lock()
	b.latest = map[string]tunnel.Report{}
	b.mu.Unlock()
	if b.open != nil {
		b.state = nil
	}
	select {
	case <-b.again:
	default:
		close(b.again)
	}
	b.start()
}

func (b *bench) revived() <-chan struct{} { return b.again }

// appliedOrKilled waits until an order is carried out, or the engine was killed,
// which it says.
func (b *bench) appliedOrKilled(o tunnel.Order, killed <-chan struct{}) bool {
	b.t.Helper()
	select {
	case <-b.again: // there is only one death
		b.applied(o)
		return false
	default:
	}
	deadline := time.After(patience)
	for {
		b.mu.Lock()
		r := b.latest[o.Release.UID]
		b.mu.Unlock()
		if r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True && r.Healthy.Status == tunnel.True {
			return false
		}
		select {
		case <-b.changed:
		case <-killed:
			return true
		case <-deadline:
			b.t.Fatalf("neither applied nor killed: %+v", r)
		}
	}
}

func (b *bench) take(r tunnel.Report) {
	b.mu.Lock()
	b.latest[r.Release.UID] = r
	b.all = append(b.all, r)
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// report waits for a report of a Release that is as wanted.
func (b *bench) report(uid, what string, want func(tunnel.Report) bool) tunnel.Report {
	b.t.Helper()
	deadline := time.After(patience)
	for {
		b.mu.Lock()
		r, ok := b.latest[uid]
		b.mu.Unlock()
		if ok && want(r) {
			return r
		}
		select {
		case <-b.changed:
		case <-deadline:
			raw, err := json.MarshalIndent(r, "", " ")
			if err != nil {
				b.t.Fatal(err)
			}
			b.t.Fatalf("no report of %s that says %s; the last one: %s", uid, what, raw)
		}
	}
}

// settled waits until an order is carried out, well or badly.
func (b *bench) settled(o tunnel.Order) tunnel.Report {
	b.t.Helper()
	return b.report(o.Release.UID, "settled", func(r tunnel.Report) bool { return r.Sequence == o.Sequence && r.Settled })
}

// applied waits until an order is carried out well.
func (b *bench) applied(o tunnel.Order) tunnel.Report {
	b.t.Helper()
	return b.report(o.Release.UID, "applied, in sync and healthy", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True &&
			r.InSync.Status == tunnel.True && r.Healthy.Status == tunnel.True
	})
}

type option func(*tunnel.Order)

// order makes an apply order for YAML documents and stores its layers.
func (b *bench) order(release, namespace, documents string, options ...option) tunnel.Order {
	b.t.Helper()
	objects, err := manifest.Parse("test.yaml", []byte(documents))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.orderOf(release, namespace, objects, options...)
}

// orderOf makes an apply order for objects.
func (b *bench) orderOf(release, namespace string, objects []manifest.Object, options ...option) tunnel.Order {
	b.t.Helper()
	set := manifest.Set{Namespace: namespace, Objects: objects}
	var plain, sealed bytes.Buffer
	if _, err := set.Write(&plain, &sealed, []byte("mac key of the test"), bytes.Repeat([]byte{7}, 32)); err != nil {
		b.t.Fatal(err)
	}
	o := b.bare(release, tunnel.VerbApply, options...)
	o.Objects = b.blobs.put(plain.Bytes())
	if sealed.Len() > 0 {
		o.Sealed = b.blobs.put(sealed.Bytes())
	}
	o.Policy.Namespace = namespace
	for _, f := range options {
		f(&o)
	}
	return o
}

func (b *bench) bare(release string, verb tunnel.Verb, options ...option) tunnel.Order {
	o := tunnel.Order{
		Verb: verb, Hub: b.hub, ClusterUID: clusterUID, Sequence: b.seq.Add(1), IssuedAt: time.Now(),
		Release: tunnel.ReleaseRef{UID: "uid-" + release, Namespace: "apps", Name: release},
		Policy:  tunnel.Policy{Automatic: true, TimeoutSeconds: 20, PruneOrphaned: true},
	}
	for _, f := range options {
		f(&o)
	}
	return o
}

// accept hands an order to the engine.
func (b *bench) accept(o tunnel.Order) tunnel.Order {
	b.t.Helper()
	if b.inRoom(o) {
		return o
	}
	payload, err := json.Marshal(o)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.runner.Accept(o, tunnel.Signed{Type: tunnel.TypeOrder, Payload: payload}); err != nil {
		b.t.Fatalf("order not accepted: %v", err)
	}
	return o
}

// apply orders YAML documents and waits until they are there.
func (b *bench) apply(release, namespace, documents string, options ...option) (tunnel.Order, tunnel.Report) {
	b.t.Helper()
	o := b.accept(b.order(release, namespace, documents, options...))
	return o, b.applied(o)
}

// namespace makes one for the test.
func (b *bench) namespace(name string) string {
	b.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	if _, err := b.plane.Dynamic().Resource(namespaces).Create(b.ctx, object, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	return name
}

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configmaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	claims      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

func (b *bench) get(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	b.t.Helper()
	got, err := b.plane.Dynamic().Resource(gvr).Namespace(namespace).Get(b.ctx, name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// live waits until an object is as wanted.
func (b *bench) live(gvr schema.GroupVersionResource, namespace, name, what string, want func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := harness.WaitFor(ctx, b.plane.Dynamic(), gvr, namespace, name, func(u *unstructured.Unstructured) (bool, error) { return u != nil && want(u), nil })
	if err != nil {
		b.t.Fatalf("%s %s/%s never %s: %v", gvr.Resource, namespace, name, what, err)
	}
	return got
}

func (b *bench) gone(gvr schema.GroupVersionResource, namespace, name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := harness.WaitGone(ctx, b.plane.Dynamic(), gvr, namespace, name); err != nil {
		b.t.Fatalf("%s %s/%s is still there: %v", gvr.Resource, namespace, name, err)
	}
}

// edit changes an object as somebody else.
func (b *bench) edit(gvr schema.GroupVersionResource, namespace, name, manager, patch string) *unstructured.Unstructured {
	b.t.Helper()
	got, err := b.plane.Dynamic().Resource(gvr).Namespace(namespace).Patch(b.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func data(u *unstructured.Unstructured, key string) string {
	s, _, err := unstructured.NestedString(u.Object, "data", key)
	if err != nil {
		return "not a string"
	}
	return s
}

var errAway = errors.New("the hub is away")

func configMap(namespace, name string, pairs ...string) string {
	var d strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&d, "  %s: %q\n", pairs[i], pairs[i+1])
	}
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata:\n%s---\n", name, namespace, d.String())
}
