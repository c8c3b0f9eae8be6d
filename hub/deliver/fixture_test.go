// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"sort"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keys is an etcd in memory: get, put and delete of keys and ranges.
type keys struct {
	mu      sync.Mutex
	values  map[string][]byte
	failing error
}

func (k *keys) in(op clientv3.Op) []string {
	var out []string
	for key := range k.values {
		from, end := op.KeyBytes(), op.RangeBytes()
		if string(from) == key || end != nil && key >= string(from) && bytes.Compare([]byte(key), end) < 0 {
			out = append(out, key)
		}
	}
	sort.Strings(out)
	return out
}

func (k *keys) Get(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := &clientv3.GetResponse{}
	for _, name := range k.in(clientv3.OpGet(key, options...)) {
		out.Kvs = append(out.Kvs, &mvccpb.KeyValue{Key: []byte(name), Value: k.values[name]})
	}
	return out, k.failing
}

func (k *keys) Put(_ context.Context, key, value string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failing == nil {
		k.values[key] = []byte(value)
	}
	return &clientv3.PutResponse{}, k.failing
}

func (k *keys) Delete(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failing == nil {
		for _, name := range k.in(clientv3.OpDelete(key, options...)) {
			delete(k.values, name)
		}
	}
	return &clientv3.DeleteResponse{}, k.failing
}

func (k *keys) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := []string{}
	for name := range k.values {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// releases is the hub's cache.
type releases map[types.UID]*v1alpha1.Release

func (r releases) ReleaseByUID(uid types.UID) (*v1alpha1.Release, bool) {
	out, ok := r[uid]
	return out, ok
}

type fixture struct {
	t        *testing.T
	keys     *keys
	releases releases
	key      ed25519.PrivateKey
	accept   []ed25519.PublicKey
	*Deliverer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, keys: &keys{values: map[string][]byte{}}, releases: releases{}, key: key}
	f.restart()
	return f
}

func (f *fixture) restart() {
	f.t.Helper()
	d, err := New(Options{HubID: "hub", Key: f.key, Accept: f.accept, Releases: f.releases, Keys: f.keys})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Deliverer = d
	for _, r := range f.releases {
		d.ReleaseChanged(nil, r)
	}
}

// run runs the Deliverer until the test ends; inside a synctest bubble.
func (f *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	<-f.Loaded()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
}

func layer(c string) *tunnel.Layer {
	digest := "sha256:"
	for range 64 {
		digest += c
	}
	return &tunnel.Layer{Digest: digest, Size: 10}
}

// order makes a Release with an apply order for cluster c1.
func (f *fixture) order(name string, objects, sealed *tunnel.Layer) *v1alpha1.Release {
	f.t.Helper()
	old := f.releases[types.UID(name)]
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	if old != nil {
		r = old.DeepCopy()
	}
	order, err := f.Issue(Intent{Release: r, ClusterUID: "c1", Objects: objects, Sealed: sealed, Terms: Terms{Policy: tunnel.Policy{Automatic: true, Replace: sealed != nil}}})(r.Status.Sequence)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Status.Order, r.Status.Sequence = &order, order.Sequence
	f.releases[r.UID] = r
	f.ReleaseChanged(old, r)
	return r
}

func (f *fixture) gone(r *v1alpha1.Release) {
	delete(f.releases, r.UID)
	f.ReleaseChanged(r, nil)
}

// listed are the verbs of a cluster's orders by Release, after the signatures
// and the head were checked.
func (f *fixture) listed(cluster string) map[string]tunnel.Verb {
	f.t.Helper()
	list, signed, _ := f.Current(cluster)
	public := f.Deliverer.keys
	if err := tunnel.Verify(signed, tunnel.TypeHead, public); err != nil {
		f.t.Fatalf("the head: %v", err)
	}
	head, err := tunnel.ParseHead(signed.Payload)
	if err != nil {
		f.t.Fatal(err)
	}
	verbs, sequences := map[string]tunnel.Verb{}, map[string]int64{}
	for _, o := range list {
		if err := tunnel.Verify(o.Signed, tunnel.TypeOrder, public); err != nil {
			f.t.Fatalf("an order: %v", err)
		}
		order, err := tunnel.ParseOrder(o.Signed.Payload)
		if err != nil {
			f.t.Fatal(err)
		}
		if order.ClusterUID != cluster || order.Release.UID != o.UID || order.Sequence != o.Sequence {
			f.t.Errorf("order %+v is listed for cluster %s as %s %d", order, cluster, o.UID, o.Sequence)
		}
		verbs[o.UID], sequences[o.UID] = order.Verb, order.Sequence
	}
	if head.Hash != tunnel.HashOrders(sequences) || head.Count != len(list) || head.ClusterUID != cluster {
		f.t.Errorf("the head %+v does not prove %v", head, sequences)
	}
	return verbs
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// bury makes the last order of a Release of the cluster that is deleted.
func (f *fixture) bury(t *testing.T, r *v1alpha1.Release, last Last) Tombstone {
	t.Helper()
	stone, err := f.Bury(t.Context(), r, "c1", last)
	if err != nil {
		t.Fatal(err)
	}
	return stone
}
