// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// crashFiles renders three waves of objects into a namespace.
func crashFiles(ns, value string, from, to int) map[string]string {
	files := map[string]string{}
	for i := from; i < to; i++ {
		name := fmt.Sprintf("cm-%03d", i)
		files["app/"+name+".yaml"] = fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, annotations: {convoy.kumodo.io/sync-wave: %q}}\ndata: {a: %q}\n",
			name, ns, fmt.Sprint(i%3), value)
	}
	return files
}

// TestKillsInMidApplyLeaveTheEdgeAsAnUndisturbedRunWould kills the agent or the
// hub with signal 9 while a change is being applied: 120 objects changed, 30
// new, 30 pruned.
func TestKillsInMidApplyLeaveTheEdgeAsAnUndisturbedRunWould(t *testing.T) {
	runs := []struct {
		name string
		kill func(context.Context) error
	}{
		{"undisturbed", func(context.Context) error { return nil }},
		{"agent", func(ctx context.Context) error { return shared.edge.Pod.Kill9(ctx) }},
		{"hub", func(ctx context.Context) error { return shared.hub.Pod.Kill9(ctx) }},
	}
	var undisturbed map[string]string
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			ctx := deadline(t)
			ns := "crash-" + run.name
			a := newApp(ctx, t, ns, crashFiles(ns, "old", 0, 150))
			a.release(ctx, t, ns, "app")
			until(ctx, t, ns, ready(""))
			commit := a.commit(ctx, t, crashFiles(ns, "new", 30, 180))
			a.sync(ctx, t, ns)
			// The first wave has begun: its first object is new.
			onEdge(ctx, t, configMaps, ns, "cm-030", data("a", "new"))
			if err := run.kill(ctx); err != nil {
				t.Fatal(err)
			}
			if run.name == "hub" {
				if err := shared.hub.WaitReady(ctx); err != nil {
					t.Fatal(err)
				}
				if err := shared.hub.WaitServed(ctx); err != nil {
					t.Fatal(err)
				}
			}
			r := until(ctx, t, ns, ready(commit))
			if r.Status.Objects != (corev1alpha1.ObjectCounts{Total: 150, Applied: 150, Healthy: 150}) {
				t.Errorf("counts: %+v", r.Status.Objects)
			}
			got := contents(ctx, t, ns)
			if undisturbed == nil {
				undisturbed = got
				return
			}
			if diff := cmp.Diff(undisturbed, got); diff != "" {
				t.Errorf("the edge differs from an undisturbed run (-undisturbed +killed):\n%s", diff)
			}
		})
	}
}

// contents gives every ConfigMap of convoy's in a namespace as JSON without
// what differs between any two runs.
func contents(ctx context.Context, t *testing.T, ns string) map[string]string {
	t.Helper()
	list, err := shared.edge.Plane.Dynamic().Resource(configMaps).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: corev1alpha1.LabelManaged})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, item := range list.Items {
		for _, path := range [][]string{
			{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
			{"metadata", "namespace"}, {"metadata", "annotations", corev1alpha1.AnnotationOwner},
		} {
			unstructured.RemoveNestedField(item.Object, path...)
		}
		fields := item.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		item.SetManagedFields(fields)
		raw, err := json.Marshal(item.Object)
		if err != nil {
			t.Fatal(err)
		}
		out[item.GetName()] = string(raw)
	}
	return out
}
