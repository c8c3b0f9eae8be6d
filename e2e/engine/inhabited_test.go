// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func namespaceOf(name string, wave int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, annotations: {convoy.kumodo.io/sync-wave: \"%d\"}}\n---\n", name, wave)
}

func claimOf(namespace, name, annotations string) string {
	return `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ` + name + `, namespace: ` + namespace + `, annotations: {` + annotations + `}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`
}

func workload(namespace, name string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: ` + namespace + `}
spec:
  replicas: 1
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec: {containers: [{name: c, image: example/app}]}
---
`
}

// strictly lets no object be deleted without being asked.
func strictly(o *tunnel.Order) { o.Policy.Budget = &tunnel.DeletionBudget{} }

func allowing(kinds ...string) option {
	return func(o *tunnel.Order) { o.Policy.Allowed = kinds }
}

// unharmed fails if one of some objects is not what it was.
func (b *bench) unharmed(all ...*unstructured.Unstructured) {
	b.t.Helper()
	for _, was := range all {
		gvr := map[string]schema.GroupVersionResource{
			"Namespace": namespaces, "PersistentVolumeClaim": claims, "Deployment": deployments, "ConfigMap": configmaps,
			"CustomResourceDefinition": definitions, "Boat": {Group: was.GroupVersionKind().Group, Version: "v1", Resource: "boats"},
		}[was.GetKind()]
		now := b.get(gvr, was.GetNamespace(), was.GetName())
		if now.GetUID() != was.GetUID() || now.GetDeletionTimestamp() != nil {
			b.t.Errorf("%s %s/%s has UID %s for %s, is deleted at %v", was.GetKind(), was.GetNamespace(), was.GetName(), now.GetUID(), was.GetUID(), now.GetDeletionTimestamp())
		}
	}
}

func TestANamespaceThatLeavesTheRenderStaysWithWhatTheRenderHasInIt(t *testing.T) {
	inModes(t, testANamespaceThatLeavesTheRenderStaysWithWhatTheRenderHasInIt)
}

func testANamespaceThatLeavesTheRenderStaysWithWhatTheRenderHasInIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("inhabited")
	contents := workload("inhabited-n", "w") + claimOf("inhabited-n", "kept", `convoy.kumodo.io/prune: "false"`) + claimOf("inhabited-n", "plain", "")
	b.apply("inhabited", ns, namespaceOf("inhabited-n", 0)+contents, strictly)
	was := []*unstructured.Unstructured{
		b.get(namespaces, "", "inhabited-n"), b.get(deployments, "inhabited-n", "w"), b.get(claims, "inhabited-n", "kept"), b.get(claims, "inhabited-n", "plain"),
	}
	o := b.accept(b.order("inhabited", ns, contents, strictly))
	r := b.report("uid-inhabited", "applied, or held", func(r tunnel.Report) bool { return r.Sequence == o.Sequence && r.Settled })
	want := "kept Namespace inhabited-n: it holds PersistentVolumeClaim inhabited-n/kept of this Release, which stays"
	if r.Applied.Status != tunnel.True || r.Held != nil || !strings.Contains(r.Applied.Message, want) {
		t.Errorf("Applied is %+v, held %+v; want %q", r.Applied, r.Held, want)
	}
	b.unharmed(was...)
	// Without its contents it stays too: it is nobody's since then.
	o = b.accept(b.order("inhabited", ns, configMap(ns, "inhabited", "k", "v")))
	b.applied(o)
	b.gone(deployments, "inhabited-n", "w")
	b.unharmed(was[0], was[2], was[3])
	b.accept(b.bare("inhabited", tunnel.VerbRemove))
	b.report("uid-inhabited", "removed", func(r tunnel.Report) bool { return r.Done })
	b.unharmed(was[0], was[2], was[3])
}

func TestTheTargetNamespaceIsNeverPrunedAlsoWhenTheRenderHadIt(t *testing.T) {
	inModes(t, testTheTargetNamespaceIsNeverPrunedAlsoWhenTheRenderHadIt)
}

func testTheTargetNamespaceIsNeverPrunedAlsoWhenTheRenderHadIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const ns = "inhabited-target"
	elsewhere := b.namespace("inhabited-elsewhere")
	other := configMap(elsewhere, "target", "k", "v")
	b.apply("target", ns, namespaceOf(ns, 0)+claimOf(ns, "data", "")+other, strictly)
	was := []*unstructured.Unstructured{b.get(namespaces, "", ns), b.get(claims, ns, "data")}
	_, r := b.apply("target", ns, claimOf(ns, "data", "")+other, strictly)
	if !strings.Contains(r.Applied.Message, "kept Namespace "+ns+": it is the target namespace") {
		t.Errorf("Applied is %+v", r.Applied)
	}
	b.unharmed(was...)
	b.accept(b.bare("target", tunnel.VerbRemove))
	b.report("uid-target", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, elsewhere, "target")
	b.unharmed(was...)
}

func TestADefinitionThatLeavesTheRenderStaysWithWhatTheRenderHasOfItsKind(t *testing.T) {
	inModes(t, testADefinitionThatLeavesTheRenderStaysWithWhatTheRenderHasOfItsKind)
}

func testADefinitionThatLeavesTheRenderStaysWithWhatTheRenderHasOfItsKind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("inhabited-kinds")
	const group = "inhabited.example.test"
	boat := "apiVersion: " + group + "/v1\nkind: Boat\nmetadata: {name: ours}\n---\n"
	b.apply("kinds", ns, definition(group)+boat, strictly)
	was := []*unstructured.Unstructured{
		b.get(definitions, "", "boats."+group), b.get(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boats"}, ns, "ours"),
	}
	_, r := b.apply("kinds", ns, boat, strictly, allowing("CustomResourceDefinition"))
	want := "kept apiextensions.k8s.io/CustomResourceDefinition boats." + group + ": it holds " + group + "/Boat " + ns + "/ours of this Release, which stays"
	if !strings.Contains(r.Applied.Message, want) || r.Held != nil {
		t.Errorf("Applied is %+v, held %+v; want %q", r.Applied, r.Held, want)
	}
	b.unharmed(was...)
	b.accept(b.bare("kinds", tunnel.VerbRemove, allowing("CustomResourceDefinition")))
	b.report("uid-kinds", "removed", func(r tunnel.Report) bool { return r.Done })
	b.unharmed(was[0])
}

func TestANamespaceIsDeletedAfterAllThatIsToGoWithItAndNotBeforeWhatTurnsOutToBeKept(t *testing.T) {
	inModes(t, testANamespaceIsDeletedAfterAllThatIsToGoWithItAndNotBeforeWhatTurnsOutToBeKept)
}

func testANamespaceIsDeletedAfterAllThatIsToGoWithItAndNotBeforeWhatTurnsOutToBeKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("inhabited-waves")
	b.namespace("inhabited-high")
	other := configMap(ns, "waves", "k", "v")
	// The namespace is of a wave above that of its contents, so that it would go first.
	b.apply("waves", ns, namespaceOf("inhabited-high", 5)+claimOf("inhabited-high", "kept", `helm.sh/resource-policy: keep`)+other)
	was := []*unstructured.Unstructured{b.get(namespaces, "", "inhabited-high"), b.get(claims, "inhabited-high", "kept")}
	allowed := allowing("Namespace", "PersistentVolumeClaim")
	_, r := b.apply("waves", ns, other, allowed)
	for _, want := range []string{
		"kept PersistentVolumeClaim inhabited-high/kept: annotation helm.sh/resource-policy",
		"kept Namespace inhabited-high: others have objects in it, as PersistentVolumeClaim inhabited-high/kept",
	} {
		if !strings.Contains(r.Applied.Message, want) {
			t.Errorf("Applied is %+v, want %q", r.Applied, want)
		}
	}
	b.unharmed(was...)
}

// refusing lets a server refuse deletions under a path.
type refusing struct {
	path string
	on   atomic.Bool
}

func (f *refusing) around(b *bench) {
	f.on.Store(true)
	b.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodDelete || !strings.Contains(req.URL.Path, f.path) || !f.on.Load() {
				return next.RoundTrip(req)
			}
			const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a policy keeps it"}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)), Request: req,
			}, nil
		})
	})
}

func TestANamespaceIsNotDeletedWhileTheServerRefusesToDeleteWhatIsInIt(t *testing.T) {
	inModes(t, testANamespaceIsNotDeletedWhileTheServerRefusesToDeleteWhatIsInIt)
}

func testANamespaceIsNotDeletedWhileTheServerRefusesToDeleteWhatIsInIt(t *testing.T) {
	t.Parallel()
	b := newIdleBench(t)
	refuse := &refusing{path: "/namespaces/inhabited-refused/configmaps/"}
	refuse.around(b)
	b.start()
	ns := b.namespace("inhabited-refusing")
	b.apply("refused", ns, namespaceOf("inhabited-refused", 0)+configMap("inhabited-refused", "one", "k", "v")+configMap(ns, "refused", "k", "v"))
	was := []*unstructured.Unstructured{b.get(namespaces, "", "inhabited-refused"), b.get(configmaps, "inhabited-refused", "one")}
	o := b.accept(b.order("refused", ns, configMap(ns, "refused", "k", "v")))
	b.report("uid-refused", "cannot prune", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Reason == v1alpha1.ReasonPruneFailed && strings.Contains(r.Applied.Message, "a policy keeps it")
	})
	b.unharmed(was...)
	refuse.on.Store(false)
	b.applied(b.accept(b.order("refused", ns, configMap(ns, "refused", "k", "v"), func(o *tunnel.Order) { o.Force = true })))
	b.gone(namespaces, "", "inhabited-refused")
}

func TestARemovalLeavesANamespaceThatHoldsWhatIsKeptAlsoWhenTheEngineIsKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	render := func(ns string) string {
		return namespaceOf(ns+"-own", 0) + workload(ns+"-own", "w") + claimOf(ns+"-own", "kept", `convoy.kumodo.io/prune: "false"`) +
			claimOf(ns+"-own", "plain", "") + configMap(ns+"-own", "later", "k", "v")
	}
	const most = 9 // writes of a removal, and some
	for first, lost := range []bool{false, true} {
		for n := 1 + first; n <= most; n += 2 {
			t.Run(fmt.Sprintf("write %d, answer lost %v", n, lost), func(t *testing.T) {
				t.Parallel()
				b := newIdleBench(t)
				b.secretState()
				b.start()
				ns := b.namespace(fmt.Sprintf("inhabited-kill-%d-%v", n, lost))
				b.apply(ns, ns, render(ns))
				was := []*unstructured.Unstructured{b.get(namespaces, "", ns+"-own"), b.get(claims, ns+"-own", "kept"), b.get(claims, ns+"-own", "plain")}
				b.halt()
				killed := make(chan struct{})
				b.killAt(b.calls.writes.Load()+int64(n), lost, killed)
				b.state = nil
				b.start()
				o := b.accept(b.bare(ns, tunnel.VerbRemove))
				if b.doneOrKilled(o, killed) {
					b.restart()
					if b.runner.Have()["uid-"+ns] < o.Sequence {
						b.accept(o)
					}
					b.report("uid-"+ns, "removed", func(r tunnel.Report) bool { return r.Done })
				}
				b.gone(deployments, ns+"-own", "w")
				b.unharmed(was...)
			})
		}
	}
}

// doneOrKilled waits until a removal is done, or the engine was killed, which it says.
func (b *bench) doneOrKilled(o tunnel.Order, killed <-chan struct{}) bool {
	b.t.Helper()
	for {
		b.mu.Lock()
		r := b.latest[o.Release.UID]
		b.mu.Unlock()
		if r.Sequence == o.Sequence && r.Done {
			return false
		}
		select {
		case <-b.changed:
		case <-killed:
			return true
		case <-b.ctx.Done():
			b.t.Fatalf("neither done nor killed: %+v", r)
		}
	}
}

func TestANamespaceStaysWithWhatADependentLeaves(t *testing.T) {
	inModes(t, testANamespaceStaysWithWhatADependentLeaves)
}

func testANamespaceStaysWithWhatADependentLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("inhabited-orphans")
	b.apply("orphans", ns, namespaceOf("inhabited-left", 0)+workload("inhabited-left", "w")+configMap(ns, "orphans", "k", "v"))
	sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	list, err := b.plane.Dynamic().Resource(sets).Namespace("inhabited-left").List(b.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("replica sets %v, %v", list, err)
	}
	was := b.get(namespaces, "", "inhabited-left")
	b.apply("orphans", ns, configMap(ns, "orphans", "k", "v"), func(o *tunnel.Order) { o.Policy.Propagation = "Orphan" })
	b.gone(deployments, "inhabited-left", "w")
	b.unharmed(was)
	if now := b.get(sets, "inhabited-left", list.Items[0].GetName()); now.GetDeletionTimestamp() != nil {
		t.Error("the replica set is being deleted")
	}
}

func TestARemovalLeavesANamespaceThatItsReleaseMadeWithWhatIsKeptInIt(t *testing.T) {
	inModes(t, testARemovalLeavesANamespaceThatItsReleaseMadeWithWhatIsKeptInIt)
}

func testARemovalLeavesANamespaceThatItsReleaseMadeWithWhatIsKeptInIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("inhabited-removal")
	b.apply("removal", ns, namespaceOf("inhabited-claim", 0)+claimOf("inhabited-claim", "data", "")+workload("inhabited-claim", "w")+
		namespaceOf("inhabited-note", 0)+strings.Replace(configMap("inhabited-note", "note", "k", "v"), "{name: note", "{annotations: {helm.sh/resource-policy: keep}, name: note", 1)+
		namespaceOf("inhabited-free", 0)+configMap("inhabited-free", "one", "k", "v"))
	was := []*unstructured.Unstructured{
		b.get(namespaces, "", "inhabited-claim"), b.get(claims, "inhabited-claim", "data"), b.get(namespaces, "", "inhabited-note"), b.get(configmaps, "inhabited-note", "note"),
	}
	b.accept(b.bare("removal", tunnel.VerbRemove, allowing("Namespace")))
	b.report("uid-removal", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(deployments, "inhabited-claim", "w")
	b.gone(namespaces, "", "inhabited-free")
	b.unharmed(was...)
}
