// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

// errKilled is what a request gets that the end of the engine cuts off.
var errKilled = errors.New("killed")

// crashRender has two waves, a sealed value, a workload and a namespace of its own.
func crashRender(ns, value string, more bool) string {
	out := configMap(ns, "one", "k", value) + `
apiVersion: v1
kind: Namespace
metadata: {name: ` + ns + `-own}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {password: ` + value + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "example/app:` + value + `"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: late, annotations: {convoy.kumodo.io/sync-wave: "1"}}
data: {k: ` + value + `}
---
`
	if more {
		out += configMap(ns, "dropped", "k", value) + configMap(ns+"-own", "inside", "k", value)
	}
	return out
}

// snapshot is what two runs must have in common: everything of the objects but what
// differs by nature.
func (b *bench) snapshot(ns string) map[string]any {
	b.t.Helper()
	all := map[string]any{}
	for _, gvr := range []schema.GroupVersionResource{configmaps, secrets, deployments, namespaces} {
		list, err := plane.Dynamic().Resource(gvr).List(b.ctx, metav1.ListOptions{LabelSelector: "convoy.kumodo.io/managed=" + b.hub})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, item := range list.Items {
			if !strings.HasPrefix(item.GetNamespace(), ns) && !(item.GetNamespace() == "" && strings.HasPrefix(item.GetName(), ns)) {
				continue
			}
			key := gvr.Resource + " " + strings.TrimPrefix(item.GetNamespace(), ns) + "/" + strings.TrimPrefix(item.GetName(), ns)
			all[key] = tidy(item, ns).Object
		}
	}
	return all
}

func tidy(u unstructured.Unstructured, ns string) unstructured.Unstructured {
	u = *u.DeepCopy()
	var managers []any
	for _, e := range u.GetManagedFields() {
		if e.Manager == "convoy" {
			// A field that only the apply which makes an object has, and no object keeps.
			fields := strings.ReplaceAll(e.FieldsV1.String(), `"f:deletionGracePeriodSeconds":{},`, "")
			managers = append(managers, string(e.Operation)+" "+strings.ReplaceAll(fields, ns, "NS"))
		}
	}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "name", "namespace"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	delete(u.Object, "status")
	u.SetAnnotations(map[string]string{"owner": strings.ReplaceAll(u.GetAnnotations()["convoy.kumodo.io/owner"], ns, "NS")})
	labels := map[string]string{}
	for k, v := range u.GetLabels() {
		labels[k] = strings.ReplaceAll(v, ns, "NS")
	}
	u.SetLabels(labels)
	u.Object["managers"] = managers
	return u
}

func TestAnEngineKilledAtAnyWriteEndsInTheSameState(t *testing.T) {
	t.Parallel()
	ctxless := newIdleBench(t)
	ctxless.secretState()
	ctxless.start()
	scenario := func(b *bench, ns string) (first, second tunnel.Order) {
		return b.order(ns, ns, crashRender(ns, "v1", true)), b.order(ns, ns, crashRender(ns, "v2", false))
	}
	// The undisturbed run.
	quiet := ctxless.namespace("crash-quiet")
	first, second := scenario(ctxless, quiet)
	ctxless.accept(first)
	ctxless.applied(first)
	ctxless.accept(second)
	ctxless.applied(second)
	writes := int(ctxless.calls.writes.Load())
	want := ctxless.snapshot(quiet)
	if len(want) != 5 {
		t.Fatalf("the undisturbed run left %d objects: %v", len(want), want)
	}
	t.Logf("the undisturbed run made %d writes, %d calls", writes, ctxless.calls.n.Load())
	// Every write is hit one way or the other.
	for first, lost := range []bool{false, true} {
		for n := 1 + first; n <= writes; n += 2 {
			t.Run(fmt.Sprintf("write %d, answer lost %v", n, lost), func(t *testing.T) {
				t.Parallel()
				b := newIdleBench(t)
				b.secretState()
				killed := make(chan struct{})
				b.killAt(int64(n), lost, killed)
				b.start()
				ns := b.namespace(fmt.Sprintf("crash-%d-%v", n, lost))
				first, second := scenario(b, ns)
				for _, o := range []tunnel.Order{first, second} {
					b.accept(o)
					if b.appliedOrKilled(o, killed) {
						b.restart()
						b.blobs.setAway(false)
						if b.runner.Have()["uid-"+ns] < o.Sequence {
							b.accept(o) // as the hub does on connect
						}
						b.applied(o)
					}
				}
				if diff := cmp.Diff(want, b.snapshot(ns)); diff != "" {
					t.Errorf("the state differs from that of an undisturbed run (-want +got):\n%s", diff)
				}
				b.gone(configmaps, ns, "dropped")
				b.gone(configmaps, ns+"-own", "inside")
			})
		}
	}
}

// killAt ends the engine at its n-th write: before it is sent, or before its answer
// arrives. From then on no request of that engine gets through.
func (b *bench) killAt(n int64, lost bool, killed chan struct{}) {
	inner := b.config.WrapTransport
	var dead bool
	b.config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		next = inner(next)
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			b.mu.Lock()
			isDead := dead
			b.mu.Unlock()
			select {
			case <-b.revived():
				return next.RoundTrip(req)
			default:
			}
			if isDead {
				return nil, errKilled
			}
			if req.Method == http.MethodGet || b.calls.writes.Load()+1 != n {
				return next.RoundTrip(req)
			}
			b.mu.Lock()
			if dead {
				b.mu.Unlock()
				return nil, errKilled
			}
			dead = true
			b.mu.Unlock()
			defer close(killed)
			if lost {
				res, err := next.RoundTrip(req)
				if err == nil {
					err = res.Body.Close()
				}
				return nil, errors.Join(errKilled, err)
			}
			return nil, errKilled
		})
	}
}
