// SPDX-License-Identifier: Apache-2.0

// Package gatewaytest is a hub in memory around a real gateway, for tests of
// both ends of a link: everything that the gateway asks for (deliver, store,
// report) can be made to lie. It is no part of the hub.
package gatewaytest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/pkg/tunnel"
)

// Hub is all that a gateway needs, in memory.
type Hub struct {
	ID       string
	CA       *x509.Certificate
	CASigner *ecdsa.PrivateKey
	OrderKey ed25519.PrivateKey
	Now      func() time.Time

	mu       sync.Mutex
	clusters map[string]*v1alpha1.Cluster // by UID
	orders   map[string]*set              // by Cluster UID
	blobs    map[string][]byte            // by digest
	reports  map[string]tunnel.Report     // newest by Release UID
	writes   int                          // of cluster statuses
	updates  int                          // asked for, written or not
	taken    map[string][]tunnel.Signed   // orders given back, by Cluster UID
	resets   []string                     // Cluster UIDs, in order
	observed chan struct{}                // closed and made anew at each report
	corrupt  func(digest string, blob []byte) []byte
	watching []func(clusterUID string)
}

type set struct {
	orders  map[string]tunnel.SignedOrder
	allowed map[string]allowed
	head    *tunnel.Signed
	changed chan struct{}
}

type allowed struct {
	layer  tunnel.Layer
	sealed bool
}

// NewHub makes keys and nothing else.
func NewHub() (*Hub, error) {
	ca, signer, err := NewCA(time.Now())
	if err != nil {
		return nil, err
	}
	_, orderKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make order key: %w", err)
	}
	return &Hub{
		ID: tunnel.CAPin(ca)[len("sha256:"):][:16], CA: ca, CASigner: signer, OrderKey: orderKey, Now: time.Now,
		clusters: map[string]*v1alpha1.Cluster{}, orders: map[string]*set{}, blobs: map[string][]byte{},
		reports: map[string]tunnel.Report{}, taken: map[string][]tunnel.Signed{}, observed: make(chan struct{}),
	}, nil
}

// NewCA makes a hub CA.
func NewCA(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make CA key: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "convoy hub CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(10 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign CA: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read CA: %w", err)
	}
	return ca, key, nil
}

// Options for gateway.New, with this hub behind each interface. What a test
// replaces lies; a listener or an address is to be added.
func (h *Hub) Options() gateway.Options {
	return gateway.Options{
		Addr: "127.0.0.1:0", HubID: h.ID, CA: h.CA, CASigner: h.CASigner, OrderKeys: func() [][]byte { return [][]byte{h.OrderPublic()} },
		Version: "test", Orders: h, Blobs: h, Reports: h, Clusters: h, Held: h, Resets: h, Now: h.Now, DrainTimeout: -1,
	}
}

// OrderPublic is the public half of OrderKey.
func (h *Hub) OrderPublic() []byte {
	return h.OrderKey.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented by the library
}

// Start runs a gateway and returns the URL that agents dial, and what stops it.
func Start(ctx context.Context, o gateway.Options) (g *gateway.Gateway, url string, stop func() error, err error) {
	g, err = gateway.New(o)
	if err != nil {
		return nil, "", nil, err // tests look at it
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	select {
	case <-g.Ready():
	case err := <-ended:
		cancel()
		return nil, "", nil, err
	}
	scheme := "wss"
	if o.Plain {
		scheme = "ws"
	}
	return g, scheme + "://" + g.Addr().String(), stop, nil
}

// AddCluster makes a Cluster and a token for it, valid for ttl.
func (h *Hub) AddCluster(namespace, name, url string, ttl time.Duration) (tunnel.ClusterID, tunnel.Token, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return tunnel.ClusterID{}, tunnel.Token{}, fmt.Errorf("make UID: %w", err)
	}
	id := tunnel.ClusterID{Namespace: namespace, Name: name, UID: hex.EncodeToString(raw[:])}
	h.mu.Lock()
	h.clusters[id.UID] = &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(id.UID)}}
	h.mu.Unlock()
	token, err := h.NewToken(id, url, ttl)
	return id, token, err
}

// NewToken makes a token for a Cluster and tells the hub its public key.
func (h *Hub) NewToken(id tunnel.ClusterID, url string, ttl time.Duration) (tunnel.Token, error) {
	seed, err := tunnel.NewSeed()
	if err != nil {
		return tunnel.Token{}, err // says what failed
	}
	token := tunnel.Token{Gateway: url, Hub: h.ID, ClusterUID: id.UID, CAPin: tunnel.CAPin(h.CA), Seed: seed}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[id.UID].DeepCopy()
	c.Status.Join = &v1alpha1.ClusterJoinStatus{
		PublicKey: base64.StdEncoding.EncodeToString(token.PublicKey()), ExpiresAt: metav1.NewTime(h.Now().Add(ttl)),
	}
	h.clusters[id.UID] = c
	return token, nil
}

// Change changes a Cluster's status behind the gateway's back, as another writer
// would, without counting.
func (h *Hub) Change(uid string, change func(*v1alpha1.ClusterStatus)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[uid].DeepCopy()
	change(&c.Status)
	h.clusters[uid] = c
}

// DeleteCluster forgets a Cluster.
func (h *Hub) DeleteCluster(uid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clusters, uid)
}

// ByUID implements gateway.Clusters.
func (h *Hub) ByUID(uid string) (*v1alpha1.Cluster, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.clusters[uid]
	return c, ok
}

// Update implements gateway.Clusters.
func (h *Hub) Update(_ context.Context, id tunnel.ClusterID, mutate func(*v1alpha1.ClusterStatus) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, ok := h.clusters[id.UID]
	if !ok {
		return errors.New("no such cluster")
	}
	h.updates++
	c := old.DeepCopy()
	if err := mutate(&c.Status); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(old.Status, c.Status) {
		return nil
	}
	h.clusters[id.UID] = c
	h.writes++
	return nil
}

// None implements gateway.Clusters.
func (h *Hub) None() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clusters) == 0
}

// Reachable implements gateway.Clusters.
func (h *Hub) Reachable() []tunnel.ClusterID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []tunnel.ClusterID
	for uid, c := range h.clusters {
		if c.Status.Reachable {
			ids = append(ids, tunnel.ClusterID{Namespace: c.Namespace, Name: c.Name, UID: uid})
		}
	}
	return ids
}

// Writes of cluster statuses so far.
func (h *Hub) Writes() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writes
}

// AddBlob stores a layer.
func (h *Hub) AddBlob(blob []byte) tunnel.Layer {
	sum := sha256.Sum256(blob)
	l := tunnel.Layer{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(blob))}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blobs[l.Digest] = blob
	return l
}

// Corrupt makes Open return what change makes of a blob; nil ends that.
func (h *Hub) Corrupt(change func(digest string, blob []byte) []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.corrupt = change
}

// Open implements gateway.Blobs.
func (h *Hub) Open(_ context.Context, digest string, _ bool) (io.ReadCloser, int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	blob, ok := h.blobs[digest]
	if !ok {
		return nil, 0, errors.New("no such blob")
	}
	size := int64(len(blob))
	if h.corrupt != nil {
		blob = h.corrupt(digest, bytes.Clone(blob))
	}
	return io.NopCloser(bytes.NewReader(blob)), size, nil
}

// Order signs an apply order and makes it current. sealed may be nil.
func (h *Hub) Order(clusterUID, releaseUID string, sequence int64, objects, sealed *tunnel.Layer) error {
	o := tunnel.Order{
		Verb: tunnel.VerbApply, Hub: h.ID, ClusterUID: clusterUID, Sequence: sequence, IssuedAt: h.Now(),
		Release: tunnel.ReleaseRef{UID: releaseUID, Namespace: "default", Name: releaseUID}, Objects: objects, Sealed: sealed,
		Policy: tunnel.Policy{Automatic: true, TimeoutSeconds: 300, Namespace: "default"}, Requires: []string{tunnel.FeatureApply},
	}
	signed, err := tunnel.SignJSON(tunnel.TypeOrder, o, h.OrderKey)
	if err != nil {
		return err // says what failed
	}
	h.Put(clusterUID, tunnel.SignedOrder{UID: releaseUID, Sequence: sequence, Signed: signed}, objects, sealed)
	return nil
}

// Put makes an order current as it is, signed by whomever.
func (h *Hub) Put(clusterUID string, o tunnel.SignedOrder, objects, sealed *tunnel.Layer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.setLocked(clusterUID)
	s.orders[o.UID] = o
	if objects != nil {
		s.allowed[objects.Digest] = allowed{*objects, false}
	}
	if sealed != nil {
		s.allowed[sealed.Digest] = allowed{*sealed, true}
	}
	h.touchLocked(clusterUID)
}

// Drop takes an order away, as a hub that lost it would.
func (h *Hub) Drop(clusterUID, releaseUID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.setLocked(clusterUID)
	delete(s.orders, releaseUID)
	h.touchLocked(clusterUID)
}

// Renew signs a Cluster's head anew, as a hub does when it is half over.
func (h *Hub) Renew(clusterUID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.touchLocked(clusterUID)
}

// touchLocked tells who waits that a Cluster's orders have changed.
func (h *Hub) touchLocked(clusterUID string) {
	s := h.setLocked(clusterUID)
	s.head = nil
	close(s.changed)
	s.changed = make(chan struct{})
	for _, told := range h.watching {
		told(clusterUID)
	}
}

// Watch implements gateway.Orders.
func (h *Hub) Watch(told func(clusterUID string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching = append(h.watching, told)
}

func (h *Hub) setLocked(clusterUID string) *set {
	s := h.orders[clusterUID]
	if s == nil {
		s = &set{orders: map[string]tunnel.SignedOrder{}, allowed: map[string]allowed{}, changed: make(chan struct{})}
		h.orders[clusterUID] = s
	}
	return s
}

// Current implements gateway.Orders.
func (h *Hub) Current(clusterUID string) ([]tunnel.SignedOrder, tunnel.Signed, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.setLocked(clusterUID)
	orders := make([]tunnel.SignedOrder, 0, len(s.orders))
	sequences := make(map[string]int64, len(s.orders))
	for uid, o := range s.orders {
		orders = append(orders, o)
		sequences[uid] = o.Sequence
	}
	if s.head == nil {
		now := h.Now()
		head, err := tunnel.SignJSON(tunnel.TypeHead, tunnel.Head{
			Hub: h.ID, ClusterUID: clusterUID, Count: len(orders), Hash: tunnel.HashOrders(sequences), IssuedAt: now, ExpiresAt: now.Add(tunnel.HeadTTL),
		}, h.OrderKey)
		if err != nil {
			return orders, tunnel.Signed{}, s.changed // agents refuse the empty head
		}
		s.head = &head
	}
	return orders, *s.head, s.changed
}

// Allowed implements gateway.Orders.
func (h *Hub) Allowed(clusterUID, digest string) (tunnel.Layer, bool, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.orders[clusterUID]
	if s == nil {
		return tunnel.Layer{}, false, false
	}
	a, ok := s.allowed[digest]
	return a.layer, a.sealed, ok
}

// Observe implements gateway.Reports.
func (h *Hub) Observe(_ context.Context, cluster tunnel.ClusterID, reports []tunnel.Report) tunnel.ReportsAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := tunnel.ReportsAnswer{Taken: map[string]int64{}}
	for _, r := range reports {
		if _, ok := h.setLocked(cluster.UID).orders[r.Release.UID]; !ok {
			if answer.Refused == nil {
				answer.Refused = map[string]string{}
			}
			answer.Refused[r.Release.UID] = "not a Release of this Cluster"
			continue
		}
		if old, ok := h.reports[r.Release.UID]; !ok || old.Counter <= r.Counter {
			h.reports[r.Release.UID] = r
		}
		answer.Taken[r.Release.UID] = r.Counter
	}
	close(h.observed)
	h.observed = make(chan struct{})
	return answer
}

// Report waits until the newest report of a Release satisfies ok.
func (h *Hub) Report(ctx context.Context, releaseUID string, ok func(tunnel.Report) bool) (tunnel.Report, error) {
	for {
		h.mu.Lock()
		r, found := h.reports[releaseUID]
		next := h.observed
		h.mu.Unlock()
		if found && ok(r) {
			return r, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return r, fmt.Errorf("wait for a report of %s: %w", releaseUID, ctx.Err())
		}
	}
}

// Names of the n-th cluster of a fleet, for loops.
func Names(n int) (namespace, name string) { return "fleet", "edge-" + strconv.Itoa(n) }

// Loopback listens on an address that only this machine reaches.
func Loopback(ctx context.Context) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}
