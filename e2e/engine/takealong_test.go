// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

var (
	statefulsets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	volumes      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
)

// setWithClaims is a StatefulSet with one claim.
const setWithClaims = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NS}
spec:
  serviceName: SERVICE
  replicas: 1
  persistentVolumeClaimRetentionPolicy: {whenDeleted: WHEN, whenScaled: Retain}
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: "example/db:1", volumeMounts: [{name: data, mountPath: /d}]}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`

func dbSet(ns, service, when string) string {
	return strings.NewReplacer("NS", ns, "SERVICE", service, "WHEN", when).Replace(setWithClaims)
}

func replaceImmutable(o *tunnel.Order) { o.Policy.Replace = true }

// owns makes one object the owner of another.
func (b *bench) owns(owner *unstructured.Unstructured, gvr schema.GroupVersionResource, ns, name string) {
	b.t.Helper()
	b.edit(gvr, ns, name, "operator", `{"metadata":{"ownerReferences":[{"apiVersion":"`+owner.GetAPIVersion()+`","kind":"`+owner.GetKind()+
		`","name":"`+owner.GetName()+`","uid":"`+string(owner.GetUID())+`"}]}}`)
}

// same fails unless an object is there as it was and is not being deleted.
func (b *bench) same(gvr schema.GroupVersionResource, before *unstructured.Unstructured) {
	b.t.Helper()
	now := b.get(gvr, before.GetNamespace(), before.GetName())
	if now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil {
		b.t.Errorf("%s %s is another one, or is being deleted: %v", before.GetKind(), before.GetName(), now.Object["metadata"])
	}
}

// kept fails unless an order is refused with one object as Immutable, for a reason.
func (b *bench) kept(o tunnel.Order, says ...string) {
	b.t.Helper()
	r := b.settled(b.accept(o))
	if len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Immutable" {
		b.t.Fatalf("applied %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	for _, text := range says {
		if !strings.Contains(r.Exceptions[0].Message, text) {
			b.t.Errorf("it is not said that %q: %s", text, r.Exceptions[0].Message)
		}
	}
}

func TestSS29NothingIsReplacedWhoseDeletionTakesDataAlong(t *testing.T) {
	inModes(t, testSS29NothingIsReplacedWhoseDeletionTakesDataAlong)
}

func testSS29NothingIsReplacedWhoseDeletionTakesDataAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-29")
	b.apply("ss29", ns, dbSet(ns, "db", "Delete"), replaceImmutable)
	set := b.get(statefulsets, ns, "db")
	claim := b.live(claims, ns, "data-db-0", "owned by its set", func(u *unstructured.Unstructured) bool { return len(u.GetOwnerReferences()) == 1 })
	b.kept(b.order("ss29", ns, dbSet(ns, "db2", "Delete"), replaceImmutable), "spec.serviceName", "whenDeleted")
	b.same(statefulsets, set)
	b.same(claims, claim)
	// With Retain the cluster takes the reference off, and nothing goes along.
	b.apply("ss29", ns, dbSet(ns, "db", "Retain"), replaceImmutable)
	b.live(claims, ns, "data-db-0", "its own", func(u *unstructured.Unstructured) bool { return len(u.GetOwnerReferences()) == 0 })
	b.apply("ss29", ns, dbSet(ns, "db2", "Retain"), replaceImmutable)
	b.same(claims, claim)
	if now := b.get(statefulsets, ns, "db"); now.GetUID() == set.GetUID() {
		t.Error("the StatefulSet was not replaced although nothing goes along")
	}
}

func TestSS29NothingIsReplacedThatOwnsClaimsByWhateverWay(t *testing.T) {
	inModes(t, testSS29NothingIsReplacedThatOwnsClaimsByWhateverWay)
}

func testSS29NothingIsReplacedThatOwnsClaimsByWhateverWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-29-owner")
	before := frozenAll(ns, "one")
	b.apply("owner", ns, before, replaceImmutable)
	for _, name := range []string{"middle", "under-map"} {
		b.foreign(configmaps, ns, name, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: "+ns+"}\n")
	}
	for _, name := range []string{"far", "near"} {
		b.foreign(claims, ns, name, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: "+name+", namespace: "+ns+"}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	}
	deployment := b.get(deployments, ns, "web")
	b.owns(deployment, configmaps, ns, "middle")
	b.owns(b.get(configmaps, ns, "middle"), claims, ns, "far")
	b.owns(b.get(configmaps, ns, "sealed"), claims, ns, "near")
	b.owns(b.get(configmaps, ns, "sealed"), configmaps, ns, "under-map")
	far, near, under := b.get(claims, ns, "far"), b.get(claims, ns, "near"), b.get(configmaps, ns, "under-map")

	b.kept(b.order("owner", ns, frozenAll(ns, "two"), replaceImmutable), "PersistentVolumeClaim "+ns+"/far", "spec.selector")
	b.same(deployments, deployment)
	b.same(claims, far)

	// What has nothing of its own by nature is replaced, and lets go what was put under it.
	b.edit(claims, ns, "far", "operator", `{"metadata":{"ownerReferences":null}}`)
	b.apply("owner", ns, frozenAll(ns, "two"), replaceImmutable)
	b.same(claims, far)
	b.same(claims, near)
	b.same(configmaps, under)
	if now := b.get(deployments, ns, "web"); now.GetUID() == deployment.GetUID() {
		t.Error("the Deployment was not replaced although nothing goes along")
	}
}

// frozenAll is a Deployment and a ConfigMap of which a field changes that cannot.
func frozenAll(ns, value string) string {
	return strings.NewReplacer("NS", ns, "VALUE", value).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 0
  selector: {matchLabels: {app: VALUE}}
  template: {metadata: {labels: {app: VALUE}}, spec: {containers: [{name: c, image: "example/app:1"}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sealed, namespace: NS}
immutable: true
data: {v: VALUE}
`)
}

func TestSS29AnObjectOfACustomKindIsNeverReplaced(t *testing.T) {
	inModes(t, testSS29AnObjectOfACustomKindIsNeverReplaced)
}

func testSS29AnObjectOfACustomKindIsNeverReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-29-custom")
	kind := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stores.ss29.example.test}
spec:
  group: ss29.example.test
  names: {kind: Store, plural: stores}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf", message: "size is immutable"}]}}}}}}
---
apiVersion: ss29.example.test/v1
kind: Store
metadata: {name: it, namespace: NS}
spec: {size: VALUE}
`
	documents := func(value string) string { return strings.NewReplacer("NS", ns, "VALUE", value).Replace(kind) }
	b.apply("custom", ns, documents("small"), replaceImmutable)
	stores := schema.GroupVersionResource{Group: "ss29.example.test", Version: "v1", Resource: "stores"}
	store := b.get(stores, ns, "it")
	b.kept(b.order("custom", ns, documents("large"), replaceImmutable), "size is immutable", "of its kind")
	b.same(stores, store)
}

func TestPR21AVolumeStaysAsItsClaimDoes(t *testing.T) {
	inModes(t, testPR21AVolumeStaysAsItsClaimDoes)
}

// volumeWithClaim is a static volume, and a claim that is bound to it.
func volumeWithClaim(ns, name string) string {
	return strings.NewReplacer("NS", ns, "NAME", name).Replace(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  claimRef: {namespace: NS, name: data}
  hostPath: {path: /tmp/NAME}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: NS}
spec: {storageClassName: "", volumeName: NAME, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`)
}

func testPR21AVolumeStaysAsItsClaimDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stay := func(ns string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stay, namespace: " + ns + "}\n"
	}
	allow := func(kinds ...string) option { return func(o *tunnel.Order) { o.Policy.Allowed = kinds } }
	bound := func(name string, options ...option) (ns string, volume, claim *unstructured.Unstructured) {
		t.Helper()
		ns = b.namespace("t-pr-21-" + name)
		b.apply(name, ns, volumeWithClaim(ns, ns)+stay(ns), options...)
		claim = b.live(claims, ns, "data", "bound", func(u *unstructured.Unstructured) bool {
			phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
			return err == nil && phase == "Bound"
		})
		return ns, b.get(volumes, "", ns), claim
	}
	ns, volume, claim := bound("pruned")
	_, r := b.apply("pruned", ns, stay(ns))
	b.same(volumes, volume)
	b.same(claims, claim)
	for _, object := range []string{"PersistentVolume " + ns, "PersistentVolumeClaim " + ns + "/data"} {
		if !strings.Contains(r.Applied.Message, object) {
			t.Errorf("%s is not told as kept: %s", object, r.Applied.Message)
		}
	}

	// That volumes may go does not take one from under a claim that stays.
	ns, volume, claim = bound("claimed", allow("PersistentVolume"))
	b.accept(b.bare("claimed", tunnel.VerbRemove, allow("PersistentVolume")))
	r = b.report("uid-claimed", "removed", func(r tunnel.Report) bool { return r.Done })
	b.same(volumes, volume)
	b.same(claims, claim)
	if !strings.Contains(r.Applied.Message, "PersistentVolumeClaim "+ns+"/data is bound to it") {
		t.Errorf("it is not said why the volume stays: %s", r.Applied.Message)
	}

	// Where both may go, the claim goes first.
	both := allow("PersistentVolume", "PersistentVolumeClaim")
	ns, _, _ = bound("both", both)
	b.apply("both", ns, stay(ns), both)
	b.gone(claims, ns, "data")
	b.gone(volumes, "", ns)
}

func TestPR22AStatefulSetWhoseClaimsGoWithItStaysUnlessClaimsMayGo(t *testing.T) {
	inModes(t, testPR22AStatefulSetWhoseClaimsGoWithItStaysUnlessClaimsMayGo)
}

func testPR22AStatefulSetWhoseClaimsGoWithItStaysUnlessClaimsMayGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		name, when       string
		set, claim       bool // they stay
		allowed, removal bool
		propagation      metav1.DeletionPropagation
	}{
		{name: "pruned", when: "Delete", set: true, claim: true},
		{name: "removed", when: "Delete", removal: true, set: true, claim: true},
		{name: "allowed", when: "Delete", allowed: true},
		{name: "retained", when: "Retain", claim: true},
		{name: "orphaned", when: "Delete", propagation: metav1.DeletePropagationOrphan, claim: true},
	} {
		ns := b.namespace("t-pr-22-" + c.name)
		stay := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: stay, namespace: " + ns + "}\n"
		policy := func(o *tunnel.Order) {
			o.Policy.Propagation = string(c.propagation)
			if c.allowed {
				o.Policy.Allowed = []string{"PersistentVolumeClaim"}
			}
		}
		release := "pr22-" + c.name
		b.apply(release, ns, dbSet(ns, "db", c.when)+stay, policy)
		set := b.get(statefulsets, ns, "db")
		claim := b.live(claims, ns, "data-db-0", "as its set says", func(u *unstructured.Unstructured) bool {
			return c.when == "Retain" || len(u.GetOwnerReferences()) == 1
		})
		var r tunnel.Report
		if c.removal {
			b.accept(b.bare(release, tunnel.VerbRemove, policy))
			r = b.report("uid-"+release, "removed", func(r tunnel.Report) bool { return r.Done })
		} else {
			o := b.accept(b.order(release, ns, stay, policy))
			r = b.report("uid-"+release, "pruned", func(r tunnel.Report) bool {
				return r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True
			})
		}
		if c.set {
			b.same(statefulsets, set)
			if !strings.Contains(r.Applied.Message, "whenDeleted") {
				t.Errorf("%s: it is not said why: %s", c.name, r.Applied.Message)
			}
		} else {
			b.gone(statefulsets, ns, "db")
		}
		if c.claim {
			b.same(claims, claim)
		} else {
			b.gone(claims, ns, "data-db-0")
		}
	}
}

func TestPR22AHookThatTakesItsClaimsAlongIsChangedWhereItIsAndLeft(t *testing.T) {
	inModes(t, testPR22AHookThatTakesItsClaimsAlongIsChangedWhereItIsAndLeft)
}

func testPR22AHookThatTakesItsClaimsAlongIsChangedWhereItIsAndLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-pr-22-hook")
	hooked := strings.Replace(dbSet(ns, "db", "Delete"), "{name: db, namespace", "{"+hookOf("PreSync", "hook-delete-policy", "BeforeHookCreation,HookSucceeded")+", name: db, namespace", 1)
	b.apply("pr22-hook", ns, configMap(ns, "main", "v", "1")+hooked, withHooks)
	set := b.get(statefulsets, ns, "db")
	claim := b.live(claims, ns, "data-db-0", "owned by its set", func(u *unstructured.Unstructured) bool { return len(u.GetOwnerReferences()) == 1 })
	_, r := b.apply("pr22-hook", ns, configMap(ns, "main", "v", "2")+strings.Replace(hooked, "db:1", "db:2", 1), withHooks)
	if len(r.Hooks) == 0 {
		t.Fatal("no hook ran")
	}
	b.live(statefulsets, ns, "db", "as the hook is now", func(u *unstructured.Unstructured) bool {
		return strings.Contains(toJSON(t, u.Object["spec"]), "example/db:2")
	})
	b.same(statefulsets, set)
	b.same(claims, claim)
}
