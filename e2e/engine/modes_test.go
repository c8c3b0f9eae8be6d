// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/hub/local"
	"kumodo.io/convoy/pkg/tunnel"
)

// The modes in which each test of the engine runs, each on a plane of its own:
//
//   - direct: the Runner is driven as an agent's link drives it;
//   - agentless: through hub/local, over a kubeconfig in a Secret;
//   - inCluster: through hub/local, as the ServiceAccount that the hub impersonates.
//
// Not multiplied are: the kill at each write (an engine in the hub is killed with the
// hub, by the same code, and the test takes longer than all others together); heads
// made by hand (hub/local makes none, it verifies those of the hub); namespaces that
// an account is bound to, which only an agent has; the conformance of the state,
// which knows no mode; and the benchmark.
const (
	direct    = "direct"
	agentless = "agentless"
	inCluster = "inCluster"
)

// planes by mode.
var planes = map[string]*harness.Plane{}

// inModes runs a test in each mode.
func inModes(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	for _, mode := range []string{direct, agentless, inCluster} {
		t.Run(mode, test)
	}
}

// modeOf is the mode that a test runs in.
func modeOf(t testing.TB) string {
	for _, mode := range []string{agentless, inCluster} {
		if strings.Contains(t.Name()+"/", "/"+mode+"/") {
			return mode
		}
	}
	return direct
}

// room is a hub as far as hub/local sees one: a Cluster, its orders, and who takes
// its reports.
type room struct {
	b       *bench
	key     ed25519.PrivateKey
	public  ed25519.PublicKey
	manager *local.Manager
	// state is the namespace of the engine's state; a test has its own, where a hub
	// has one for each target.
	state string

	mu      sync.Mutex
	cluster *v1alpha1.Cluster
	orders  map[string]tunnel.SignedOrder
	parsed  map[string]tunnel.Order
	taken   []tunnel.Signed
	resets  int
	changed chan struct{}
}

func newRoom(b *bench, state string) *room {
	b.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	r := &room{
		b: b, key: private, public: public, state: state, changed: make(chan struct{}),
		orders: map[string]tunnel.SignedOrder{}, parsed: map[string]tunnel.Order{},
		cluster: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "here", UID: clusterUID, Generation: 1}},
	}
	r.cluster.Spec.ConnectionMode = v1alpha1.ConnectionMode(b.mode)
	if b.mode == agentless {
		r.cluster.Spec.Agentless = &v1alpha1.AgentlessConnection{Auth: v1alpha1.ClusterAuth{
			Type:       v1alpha1.AuthTypeKubeconfig,
			Kubeconfig: &v1alpha1.KubeconfigAuth{SecretRef: v1alpha1.SecretKeyReference{Name: "here", Key: "kubeconfig"}},
		}}
		r.cluster.Status.CheckedSecrets = []string{"here"}
	}
	return r
}

// start runs what the hub runs for the Cluster, and returns when an engine works.
func (r *room) start() (stop context.CancelFunc, ended chan error) {
	b := r.b
	b.t.Helper()
	options := local.Options{
		HubID: b.hub, OrderKeys: func() []ed25519.PublicKey { return []ed25519.PublicKey{r.public} },
		Clusters: clusters{r}, Status: r, Secrets: r, Orders: r, Held: r, Blobs: r, Reports: r, Wrap: b.config.WrapTransport,
		Resync: time.Hour, AgentlessNamespace: r.state, InClusterNamespace: r.state,
	}
	if b.mode == inCluster {
		options.Host = rest.CopyConfig(b.plane.RESTConfig())
	}
	manager, err := local.New(options)
	if err != nil {
		b.t.Fatal(err)
	}
	r.manager = manager
	ctx, cancel := context.WithCancel(logr.NewContext(b.ctx, b.log))
	ended = make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	return cancel, ended
}

// order signs an order and lists it.
func (r *room) order(o tunnel.Order) {
	r.b.t.Helper()
	signed, err := tunnel.SignJSON(tunnel.TypeOrder, o, r.key)
	if err != nil {
		r.b.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders[o.Release.UID] = tunnel.SignedOrder{UID: o.Release.UID, Sequence: o.Sequence, Signed: signed}
	r.parsed[o.Release.UID] = o
	close(r.changed)
	r.changed = make(chan struct{})
}

// Current implements local.Orders.
func (r *room) Current(string) ([]tunnel.SignedOrder, tunnel.Signed, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []tunnel.SignedOrder
	sequences := map[string]int64{}
	for uid, o := range r.orders {
		all = append(all, o)
		sequences[uid] = o.Sequence
	}
	now := time.Now()
	head, err := tunnel.SignJSON(tunnel.TypeHead, tunnel.Head{
		Hub: r.b.hub, ClusterUID: clusterUID, Count: len(all), Hash: tunnel.HashOrders(sequences), IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	}, r.key)
	if err != nil {
		r.b.t.Error(err)
	}
	return all, head, r.changed
}

// Allowed implements local.Orders.
func (r *room) Allowed(_, digest string) (tunnel.Layer, bool, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.parsed {
		switch {
		case o.Objects != nil && o.Objects.Digest == digest:
			return *o.Objects, false, true
		case o.Sealed != nil && o.Sealed.Digest == digest:
			return *o.Sealed, true, true
		case o.Rules != nil && o.Rules.Digest == digest:
			return *o.Rules, false, true
		}
	}
	return tunnel.Layer{}, false, false
}

// Behind implements local.Orders.
func (r *room) Behind(_ string, have map[string]int64) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var behind []string
	for uid, sequence := range have {
		if r.orders[uid].Sequence < sequence {
			behind = append(behind, uid)
		}
	}
	return behind
}

// Take implements local.Held.
func (r *room) Take(_ context.Context, _ tunnel.ClusterID, orders []tunnel.Signed) error {
	r.mu.Lock()
	r.taken = append(r.taken, orders...)
	r.mu.Unlock()
	select {
	case r.b.changed <- struct{}{}:
	default:
	}
	return nil
}

// TestHA03AHubThatLostAnOrderIsGivenItBack, and what runs is left alone meanwhile.
func TestHA03AHubThatLostAnOrderIsGivenItBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{agentless, inCluster} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ns := b.namespace("lost")
			o, _ := b.apply("lost", ns, configMap(ns, "one", "k", "v"))
			before := b.get(configmaps, ns, "one")
			b.halt()
			b.room.mu.Lock()
			delete(b.room.orders, o.Release.UID)
			b.room.mu.Unlock()
			b.start()
			deadline := time.After(patience)
			for {
				b.room.mu.Lock()
				taken := len(b.room.taken)
				b.room.mu.Unlock()
				if taken > 0 {
					break
				}
				select {
				case <-b.changed:
				case <-deadline:
					t.Fatal("nothing was given back")
				}
			}
			b.room.mu.Lock()
			back, err := tunnel.ParseOrder(b.room.taken[0].Payload)
			verified := tunnel.Verify(b.room.taken[0], tunnel.TypeOrder, []ed25519.PublicKey{b.room.public})
			b.room.mu.Unlock()
			if err != nil || verified != nil || back.Sequence != o.Sequence || back.Release.UID != o.Release.UID {
				t.Errorf("given back: %+v, %v, %v", back, err, verified)
			}
			b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
			after := b.live(configmaps, ns, "one", "kept as it was ordered", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
			if after.GetUID() != before.GetUID() {
				t.Error("what runs was made anew")
			}
		})
	}
}

// Open implements local.Blobs.
func (r *room) Open(ctx context.Context, digest string, sealed bool) (io.ReadCloser, int64, error) {
	out, err := r.b.blobs.Open(ctx, tunnel.Layer{Digest: digest}, sealed, "")
	return out, 0, err
}

// Observe implements local.Reports.
func (r *room) Observe(_ context.Context, _ tunnel.ClusterID, reports []tunnel.Report) tunnel.ReportsAnswer {
	answer := tunnel.ReportsAnswer{Taken: map[string]int64{}}
	for i := range reports {
		r.b.take(reports[i])
		answer.Taken[reports[i].Release.UID] = reports[i].Counter
	}
	return answer
}

// clusters are the one that there is.
type clusters struct{ *room }

// Cluster implements local.Clusters.
func (c clusters) Cluster(types.NamespacedName) (*v1alpha1.Cluster, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cluster, true
}

// Clusters implements local.Clusters.
func (c clusters) Clusters() []*v1alpha1.Cluster {
	one, _ := c.Cluster(types.NamespacedName{})
	return []*v1alpha1.Cluster{one}
}

// GetSecret implements local.Secrets.
func (r *room) GetSecret(context.Context, string, string) (map[string][]byte, error) {
	raw, err := os.ReadFile(r.b.plane.Kubeconfig())
	return map[string][]byte{"kubeconfig": raw}, err
}

// Cluster implements local.Status. A Cluster that cannot be served fails the test.
func (r *room) Cluster(_ context.Context, _ types.NamespacedName, _ types.UID, mutate func(*v1alpha1.ClusterStatus) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.cluster.DeepCopy()
	if err := mutate(&next.Status); err != nil {
		return err
	}
	next.Status.ObservedGeneration = next.Generation
	r.cluster = next
	return nil
}

// Connected implements local.Status.
func (r *room) Connected(tunnel.ClusterID) {}

// Reset implements local.Status.
func (r *room) Reset(context.Context, tunnel.ClusterID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resets++
	return nil
}

// counted leaves out of a test's count what the room asks for by itself: its probe,
// and the state, which an engine that is driven directly keeps in memory.
func (r *room) counted(req *http.Request) bool {
	path := req.URL.Path
	return path != "/version" && path != "/apis" && path != "/api/v1/namespaces/kube-system" && path != "/api/v1/namespaces" &&
		!strings.HasPrefix(path, "/api/v1/namespaces/"+r.state) && !strings.Contains(path, "/selfsubjectaccessreviews")
}

// inRoom hands an order to the hub of this mode, if it has one.
func (b *bench) inRoom(o tunnel.Order) bool {
	if b.room == nil {
		return false
	}
	b.room.order(o)
	return true
}

// acknowledged waits until the engine has nothing of Releases that are done.
func (b *bench) acknowledged(reports ...tunnel.Report) {
	b.t.Helper()
	if b.room == nil {
		for _, r := range reports {
			b.runner.Acknowledged(r.Release.UID, r.Counter)
		}
		if have := b.runner.Have(); len(have) != 0 {
			b.t.Errorf("the engine still has %v", have)
		}
		return
	}
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, r := range reports {
		for {
			known, err := b.room.manager.Newest(b.ctx, tunnel.ClusterID{UID: clusterUID}, types.UID(r.Release.UID))
			if err != nil {
				b.t.Fatal(err)
			}
			if known == nil {
				break
			}
			select {
			case <-tick.C:
			case <-deadline:
				b.t.Fatalf("the engine still has %s", r.Release.UID)
			}
		}
	}
}

// deployerRole lets the account that a hub impersonates do all, as the overlay
// manifests/hub/overlays/in-cluster does.
func deployerRole(ctx context.Context, plane *harness.Plane) error {
	_, err := plane.Kubectl(ctx, "create", "clusterrolebinding", local.DeployerName, "--clusterrole=cluster-admin",
		"--serviceaccount="+local.DeployerNamespace+":"+local.DeployerName)
	if err != nil {
		return fmt.Errorf("bind %s: %w", local.DeployerName, err)
	}
	return nil
}
