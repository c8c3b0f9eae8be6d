// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestAnObjectOfAnotherReleaseIsRefused(t *testing.T) {
	inModes(t, testAnObjectOfAnotherReleaseIsRefused)
}

func testAnObjectOfAnotherReleaseIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("two-owners")
	b.apply("owner-a", ns, configMap(ns, "one", "k", "a"))
	o := b.accept(b.order("owner-b", ns, configMap(ns, "one", "k", "b")+configMap(ns, "two", "k", "b")))
	r := b.settled(o)
	if r.Applied.Reason != "OwnedByOther" || !strings.Contains(r.Applied.Message, "uid-owner-a") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if data(b.get(configmaps, ns, "one"), "k") != "a" {
		t.Error("the object was changed")
	}
	// Removing the one that was refused takes nothing from the other.
	b.accept(b.bare("owner-b", tunnel.VerbRemove))
	b.report("uid-owner-b", "removed", func(r tunnel.Report) bool { return r.Done })
	b.get(configmaps, ns, "one")
}

func TestAnObjectThatAppearsBetweenLookAndApplyIsNotTaken(t *testing.T) {
	inModes(t, testAnObjectThatAppearsBetweenLookAndApplyIsNotTaken)
}

func testAnObjectThatAppearsBetweenLookAndApplyIsNotTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("race")
	intrude := func(n int64, req *http.Request) error {
		if req.Method != http.MethodPatch || req.URL.Query().Get("dryRun") != "" || !strings.HasSuffix(req.URL.Path, "/contested") {
			return nil
		}
		none := func(int64, *http.Request) error { return nil }
		b.calls.before.Store(&none)
		_, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Create(b.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "contested", "annotations": map[string]any{"convoy.kumodo.io/owner": "otherhub/other"}},
			"data":     map[string]any{"k": "theirs"},
		}}, metav1.CreateOptions{FieldManager: "convoy"})
		return err
	}
	b.calls.before.Store(&intrude)
	o := b.accept(b.order("race", ns, configMap(ns, "contested", "k", "ours")))
	r := b.settled(o)
	if r.Applied.Status == tunnel.True || !strings.Contains(r.Applied.Message, "otherhub/other") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if got := b.get(configmaps, ns, "contested"); data(got, "k") != "theirs" {
		t.Errorf("the object was taken: %v", got.Object)
	}
}

func TestHA01TwoHubsOnOneClusterLeaveEachOtherAlone(t *testing.T) {
	inModes(t, testHA01TwoHubsOnOneClusterLeaveEachOtherAlone)
}

func testHA01TwoHubsOnOneClusterLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	a, other := newBench(t), newIdleBench(t)
	other.hub = "fedcba9876543210"
	other.start()
	ns := a.namespace("ha01")
	// The same Release UID on purpose: only the hub tells them apart.
	a.apply("ha01", ns, configMap(ns, "from-a", "k", "a"))
	other.apply("ha01", ns, configMap(ns, "from-b", "k", "b"))
	a.apply("ha01", ns, configMap(ns, "from-a", "k", "a2"))
	other.apply("ha01", ns, configMap(ns, "from-b", "k", "b2"))
	o := a.accept(a.order("ha01", ns, configMap(ns, "from-a", "k", "a3")+configMap(ns, "from-b", "k", "a3")))
	if r := a.settled(o); r.Applied.Reason != "OwnedByOther" {
		t.Errorf("applied is %+v", r.Applied)
	}
	other.accept(other.bare("ha01", tunnel.VerbRemove))
	other.report("uid-ha01", "removed", func(r tunnel.Report) bool { return r.Done })
	a.gone(configmaps, ns, "from-b")
	if data(a.get(configmaps, ns, "from-a"), "k") != "a2" {
		t.Error("the object of the first hub was touched")
	}
}

func TestHA01LookAlikeNamesAreApart(t *testing.T) { inModes(t, testHA01LookAlikeNamesAreApart) }

func testHA01LookAlikeNamesAreApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ha01-names")
	long := "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"
	for i, name := range []string{"a-b", "b", long + "-x1", long + "-x2"} {
		b.apply(name, ns, configMap(ns, "from-"+string(rune('0'+i)), "k", "v"), func(o *tunnel.Order) {
			if len(name) > 20 {
				o.Release.UID = fmt.Sprintf("uid-of-%d", i) // a UID has 64 characters at most
			}
		})
	}
	b.accept(b.bare("b", tunnel.VerbRemove))
	b.report("uid-b", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "from-1")
	for _, name := range []string{"from-0", "from-2", "from-3"} {
		b.get(configmaps, ns, name)
	}
}

func TestPR07CopiedMarksMakeNothingOurs(t *testing.T) { inModes(t, testPR07CopiedMarksMakeNothingOurs) }

func testPR07CopiedMarksMakeNothingOurs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr07")
	service := func(rev string) string {
		return `
apiVersion: v1
kind: Service
metadata: {name: svc, labels: {app: svc, rev: "` + rev + `"}}
spec: {selector: {app: svc}, ports: [{port: 80}]}
`
	}
	b.apply("pr07", ns, service("1"))
	svc := b.get(services, ns, "svc")
	child := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "svc-child"}, "data": map[string]any{"made": "by-operator"},
	}}
	child.SetLabels(svc.GetLabels())
	child.SetAnnotations(svc.GetAnnotations())
	made, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Create(b.ctx, child, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The endpoint slice controller does the same.
	slices := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	slice := ""
	err = wait.PollUntilContextTimeout(b.ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list, err := b.plane.Dynamic().Resource(slices).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=svc"})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		slice = list.Items[0].GetName()
		return true, nil
	})
	if err != nil {
		t.Fatalf("no EndpointSlice of svc: %v", err)
	}
	before := b.get(slices, ns, slice).GetUID()
	_, r := b.apply("pr07", ns, service("2"))
	if r.Counts.Total != 1 || len(b.inventory("uid-pr07")) != 1 || len(r.Exceptions) != 0 {
		t.Errorf("the report counts %+v, and has %+v", r.Counts, r.Exceptions)
	}
	if got := b.get(configmaps, ns, "svc-child"); got.GetUID() != made.GetUID() || got.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("the child was touched: %v", got.Object)
	}
	if got := b.get(slices, ns, slice); got.GetUID() != before || got.GetDeletionTimestamp() != nil {
		t.Errorf("the EndpointSlice was touched: %v", got.Object)
	}
	b.accept(b.bare("pr07", tunnel.VerbRemove))
	b.report("uid-pr07", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(services, ns, "svc")
	if got := b.get(configmaps, ns, "svc-child"); got.GetUID() != made.GetUID() || got.GetDeletionTimestamp() != nil {
		t.Error("the child was touched")
	}
}

func TestConflictsAreNamedAndForcedOnlyIfThePolicySaysSo(t *testing.T) {
	inModes(t, testConflictsAreNamedAndForcedOnlyIfThePolicySaysSo)
}

func testConflictsAreNamedAndForcedOnlyIfThePolicySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("conflict")
	_, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Apply(b.ctx, "one", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": map[string]any{"k": "theirs", "other": "theirs"},
	}}, metav1.ApplyOptions{FieldManager: "other-controller"})
	if err != nil {
		t.Fatal(err)
	}
	o := b.accept(b.order("conflict", ns, configMap(ns, "one", "k", "ours")))
	r := b.settled(o)
	if r.Applied.Reason != "Conflict" || !strings.Contains(r.Applied.Message, `data.k managed by "other-controller"`) {
		t.Errorf("applied is %+v", r.Applied)
	}
	if got := b.get(configmaps, ns, "one"); data(got, "k") != "theirs" || got.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
		t.Error("the object was changed")
	}
	b.apply("conflict", ns, configMap(ns, "one", "k", "ours"), func(o *tunnel.Order) { o.Policy.ForceConflicts = true })
	if got := b.get(configmaps, ns, "one"); data(got, "k") != "ours" || data(got, "other") != "theirs" {
		t.Errorf("after force the data are %v", got.Object["data"])
	}
	// A field that we applied before is ours: no policy is needed to change it, even
	// if somebody took it over while the engine did not repair.
	b.apply("conflict", ns, configMap(ns, "one", "k", "ours2"), func(o *tunnel.Order) { o.Policy.Automatic = false })
	_, err = b.plane.Dynamic().Resource(configmaps).Namespace(ns).Patch(b.ctx, "one", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"k":"stolen"}}`),
		metav1.PatchOptions{FieldManager: "thief", Force: new(bool)})
	if err == nil {
		t.Fatal("the field was not ours")
	}
	b.edit(configmaps, ns, "one", "thief", `{"data":{"k":"stolen"}}`)
	b.report("uid-conflict", "drifted", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.False })
	b.apply("conflict", ns, configMap(ns, "one", "k", "ours3"), func(o *tunnel.Order) { o.Policy.Automatic = false })
	if got := b.get(configmaps, ns, "one"); data(got, "k") != "ours3" {
		t.Errorf("the data are %v", got.Object["data"])
	}
}

func TestFieldsLeftByKubectlApplyAreTakenOver(t *testing.T) {
	inModes(t, testFieldsLeftByKubectlApplyAreTakenOver)
}

func testFieldsLeftByKubectlApplyAreTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("csa")
	before := configMap(ns, "one", "k", "kubectl", "old", "kubectl")
	if _, err := b.plane.KubectlInput(b.ctx, before, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	b.apply("csa", ns, configMap(ns, "one", "k", "ours"))
	got := b.get(configmaps, ns, "one")
	if data(got, "k") != "ours" || data(got, "old") != "" {
		t.Errorf("the data are %v", got.Object["data"])
	}
}
