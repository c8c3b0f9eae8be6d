// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"sort"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

func TestASequenceFollowsTheClockAndNeverStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
		now := time.Now().UnixMilli()
		for last, want := range map[int64]int64{0: now, now - 5: now, now: now + 1, now + 70_000: now + 70_001} {
			order, err := f.Issue(Intent{Release: r, ClusterUID: "c1", Objects: layer("a")})(last)
			if err != nil {
				t.Fatal(err)
			}
			if order.Sequence != want {
				t.Errorf("after %d comes %d, want %d", last, order.Sequence, want)
			}
		}
	})
}

func TestAnOrderSaysWhatTheAgentNeedsForIt(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), layer("b"))
	order, ok := f.Ordered(r.UID)
	if !ok {
		t.Fatal("there is no order")
	}
	equal(t, "requires", []string{tunnel.FeatureApply, tunnel.FeatureSealed, tunnel.FeatureReplace}, order.Requires)
	equal(t, "names", tunnel.ReleaseRef{UID: "web", Namespace: "team", Name: "web"}, order.Release)
}

func TestNothingIsSignedThatNoAgentCouldRead(t *testing.T) {
	f := newFixture(t)
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
	if _, err := f.Issue(Intent{Release: r, ClusterUID: "c1"})(0); !errors.Is(err, tunnel.ErrOrder) {
		t.Errorf("an apply order without a render gave %v", err)
	}
}

func TestEachClusterHasItsOwnOrdersAndMayAskForNothingElse(t *testing.T) {
	f := newFixture(t)
	f.order("web", layer("a"), layer("b"))
	f.order("db", layer("c"), nil)
	equal(t, "orders of c1", map[string]tunnel.Verb{"web": "apply", "db": "apply"}, f.listed("c1"))
	equal(t, "orders of c2", map[string]tunnel.Verb{}, f.listed("c2"))
	for digest, want := range map[string]string{layer("a").Digest: "objects", layer("b").Digest: "sealed", layer("c").Digest: "objects", layer("d").Digest: "no"} {
		got := "no"
		if l, sealed, ok := f.Allowed("c1", digest); ok {
			got = map[bool]string{true: "sealed", false: "objects"}[sealed]
			equal(t, "layer", digest, l.Digest)
		}
		equal(t, "c1 asking for "+digest, want, got)
		if _, _, ok := f.Allowed("c2", digest); ok {
			t.Errorf("c2 may have %s", digest)
		}
	}
	// A newer order takes the old render away.
	f.order("web", layer("d"), nil)
	if _, _, ok := f.Allowed("c1", layer("a").Digest); ok {
		t.Error("a render that is no longer ordered is still given")
	}
}

func TestAChangeIsToldAndAHeadIsRenewedAtHalfItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		_, first, changed := f.Current("c1")
		r := f.order("web", layer("a"), nil)
		<-changed
		_, second, changed := f.Current("c1")
		f.ReleaseChanged(r, r.DeepCopy()) // the same order again: no change
		started := time.Now()
		<-changed
		if waited := time.Since(started); waited < headLife/2 || waited > headLife/2+headCheck {
			t.Errorf("the head was renewed after %s", waited)
		}
		_, third, _ := f.Current("c1")
		if bytes.Equal(first.Signature, second.Signature) || bytes.Equal(second.Signature, third.Signature) {
			t.Error("the head did not change")
		}
	})
}

func TestADeletedReleaseLeavesItsLastOrderUntilTheAgentIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var told []types.UID
		f.OnDone(func(uid types.UID) { told = append(told, uid) })
		stop := f.run()
		r := f.order("web", layer("a"), nil)
		buried, err := f.Bury(t.Context(), r, "c1", Removal())
		if err != nil {
			t.Fatal(err)
		}
		if buried.Sequence <= r.Status.Sequence {
			t.Errorf("the last order has sequence %d after %d", buried.Sequence, r.Status.Sequence)
		}
		equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		equal(t, "keys", []string{Prefix + "c1/web"}, f.keys.names())
		again, err := f.Bury(t.Context(), r, "c1", Removal())
		if err != nil || again.Sequence != buried.Sequence {
			t.Errorf("a second burial gave %d, %v", again.Sequence, err)
		}
		if _, _, ok := f.Allowed("c1", layer("a").Digest); ok {
			t.Error("the render is still given")
		}

		// The hub restarts; the order is still there.
		stop()
		f.restart()
		f.OnDone(func(uid types.UID) { told = append(told, uid) })
		defer f.run()()
		equal(t, "orders after a restart", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		equal(t, "waiting", 1, f.Waiting("c1"))

		// Another cluster, or an older order, is not believed.
		done := func(cluster types.UID, sequence int64) {
			if err := f.Done(t.Context(), cluster, "web", sequence); err != nil {
				t.Error(err)
			}
		}
		done("c2", buried.Sequence)
		done("c1", r.Status.Sequence)
		equal(t, "waiting", 1, f.Waiting("c1"))

		// Done, but the Release is still there: its apply order must not come back.
		done("c1", buried.Sequence)
		equal(t, "told", []types.UID{"web"}, told)
		equal(t, "orders while the Release is still there", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		equal(t, "waiting", 0, f.Waiting("c1"))
		f.gone(r)
		synctest.Wait()
		equal(t, "orders at the end", map[string]tunnel.Verb{}, f.listed("c1"))
		equal(t, "keys at the end", []string{}, f.keys.names())
	})
}

func TestAnApplyOrderNeverComesBackBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		buried, err := f.Bury(t.Context(), r, "c1", Removal())
		if err != nil {
			t.Fatal(err)
		}
		// Gone from the cache, which has not told of it yet.
		delete(f.releases, r.UID)
		if err := f.Done(t.Context(), "c1", "web", buried.Sequence); err != nil {
			t.Fatal(err)
		}
		equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		f.ReleaseChanged(r, nil)
		equal(t, "orders", map[string]tunnel.Verb{}, f.listed("c1"))
		synctest.Wait()
		equal(t, "keys", []string{}, f.keys.names())
	})
}

func TestAnAbsentAgentFindsTheRemoveOrderWhenTheReleaseIsLongGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		buried, err := f.Bury(t.Context(), r, "c1", Removal())
		if err != nil {
			t.Fatal(err)
		}
		f.gone(r)
		<-time.NewTimer(29 * 24 * time.Hour).C
		equal(t, "orders after 29 days", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		if err := f.Done(t.Context(), "c1", "web", buried.Sequence); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, "keys", []string{}, f.keys.names())
	})
}

func TestAfterThirtyDaysTheAgentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
			t.Fatal(err)
		}
		f.gone(r)
		<-time.NewTimer(31 * 24 * time.Hour).C
		synctest.Wait()
		equal(t, "keys", []string{}, f.keys.names())
		equal(t, "orders", map[string]tunnel.Verb{}, f.listed("c1"))
	})
}

func TestKeepingTheWorkloadsAfterAllIsANewerOrder(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	remove, err := f.Bury(t.Context(), r, "c1", Removal())
	if err != nil {
		t.Fatal(err)
	}
	release, err := f.Bury(t.Context(), r, "c1", LettingGo())
	if err != nil {
		t.Fatal(err)
	}
	if release.Sequence <= remove.Sequence {
		t.Errorf("sequence %d after %d", release.Sequence, remove.Sequence)
	}
	equal(t, "orders", map[string]tunnel.Verb{"web": "release"}, f.listed("c1"))
}

func TestAReleaseThatWasNeverOrderedHasNoLastOrder(t *testing.T) {
	f := newFixture(t)
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); !errors.Is(err, ErrNothingOrdered) {
		t.Errorf("got %v, want ErrNothingOrdered", err)
	}
	equal(t, "keys", []string{}, f.keys.names())
}

func TestAnOrderThatCouldNotBeStoredIsNotGivenOut(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	f.keys.failing = errors.New("away")
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); err == nil {
		t.Error("no error")
	}
	equal(t, "orders", map[string]tunnel.Verb{"web": "apply"}, f.listed("c1"))
}

func TestOnlyWhatThisHubSignedCounts(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	mine := *r.Status.Order
	forge := func(change func(*v1alpha1.OrderStatus)) *v1alpha1.Release {
		out := r.DeepCopy()
		order := mine
		change(&order)
		out.Status.Order = &order
		return out
	}
	for name, forged := range map[string]*v1alpha1.Release{
		"another payload":  forge(func(o *v1alpha1.OrderStatus) { o.Payload += " " }),
		"another key":      forge(func(o *v1alpha1.OrderStatus) { o.KeyID = "x" }),
		"no signature":     forge(func(o *v1alpha1.OrderStatus) { o.Signature = "" }),
		"another sequence": forge(func(o *v1alpha1.OrderStatus) { o.Sequence++ }),
		"no order":         {ObjectMeta: r.ObjectMeta},
	} {
		f.ReleaseChanged(r, forged)
		if _, ok := f.Ordered(r.UID); ok {
			t.Errorf("%s counts as an order", name)
		}
		equal(t, name, map[string]tunnel.Verb{}, f.listed("c1"))
		f.ReleaseChanged(forged, r)
		equal(t, "put right", map[string]tunnel.Verb{"web": "apply"}, f.listed("c1"))
	}
	// An order that is right, but stands in the status of another Release.
	other := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "other"}, Status: v1alpha1.ReleaseStatus{Order: &mine}}
	f.ReleaseChanged(nil, other)
	if _, ok := f.Ordered("other"); ok {
		t.Error("an order of another Release counts")
	}
}

func TestStoredOrdersThatAreNotOursAreLeftAloneAndIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r := f.order("web", layer("a"), nil)
		if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
			t.Fatal(err)
		}
		value := f.keys.values[Prefix+"c1/web"]
		var signed tunnel.Signed
		if err := json.Unmarshal(value, &signed); err != nil {
			t.Fatal(err)
		}
		signed.Signature[0] ^= 1
		forged, err := json.Marshal(signed)
		if err != nil {
			t.Fatal(err)
		}
		f.keys.values = map[string][]byte{Prefix + "c1/web": forged, Prefix + "c2/web": value, Prefix + "c1/x": []byte("{")}
		f.releases = releases{}
		f.restart()
		defer f.run()()
		equal(t, "orders of c1", map[string]tunnel.Verb{}, f.listed("c1"))
		equal(t, "orders of c2", map[string]tunnel.Verb{}, f.listed("c2"))
		equal(t, "keys", 3, len(f.keys.names()))
	})
}

func TestADeletedClusterTakesItsOrdersWithIt(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
		t.Fatal(err)
	}
	if err := f.Forget(t.Context(), "c1"); err != nil {
		t.Fatal(err)
	}
	equal(t, "keys", []string{}, f.keys.names())
	if _, ok := f.Buried("web"); ok {
		t.Error("the last order is still there")
	}
}
