// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

func TestADeletedReleaseTakesItsObjectsAndOnlyThem(t *testing.T) {
	ctx := deadline(t)
	const ns = "deleted"
	a := newApp(ctx, t, ns, map[string]string{"app/cm.yaml": configMap(ns, "ours", "a", "1")})
	a.release(ctx, t, ns, "app")
	until(ctx, t, ns, ready(""))
	// Labels are no proof of ownership (PR-07): a copy of ours stays.
	copied := strings.Replace(configMap(ns, "theirs", "a", "1"), "metadata: {", "metadata: {labels: {convoy.kumodo.io/managed: \"true\"}, ", 1)
	if _, err := shared.edge.Plane.KubectlInput(ctx, copied, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.hub.Plane.Kubectl(ctx, "-n", team, "delete", "release", ns, "--timeout=180s"); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitGone(ctx, shared.edge.Plane.Dynamic(), configMaps, ns, "ours"); err != nil {
		t.Error(err)
	}
	onEdge(ctx, t, configMaps, ns, "theirs", exists)
	if err := harness.WaitGone(ctx, shared.hub.Plane.Dynamic(), install.Inventories, team, ns); err != nil {
		t.Error(err)
	}
}

func TestKeepWorkloadsLeavesEverythingUnmarked(t *testing.T) {
	ctx := deadline(t)
	const ns = "kept"
	a := newApp(ctx, t, ns, map[string]string{"app/cm.yaml": configMap(ns, "ours", "a", "1")})
	a.release(ctx, t, ns, "app", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
	until(ctx, t, ns, ready(""))
	before := onEdge(ctx, t, configMaps, ns, "ours", exists)
	if before.GetAnnotations()[corev1alpha1.AnnotationOwner] == "" {
		t.Error("the object has no owner mark while it is ours")
	}
	if _, err := shared.hub.Plane.Kubectl(ctx, "-n", team, "delete", "release", ns, "--timeout=180s"); err != nil {
		t.Fatal(err)
	}
	after, err := shared.edge.Plane.Dynamic().Resource(configMaps).Namespace(ns).Get(ctx, "ours", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetUID() != before.GetUID() || after.GetAnnotations()[corev1alpha1.AnnotationOwner] != "" || after.GetLabels()[corev1alpha1.LabelManaged] != "" {
		t.Errorf("left behind with UID %s (was %s), labels %v, annotations %v", after.GetUID(), before.GetUID(), after.GetLabels(), after.GetAnnotations())
	}
}

// TestADeletedNamespaceOfTheHubLeavesWorkloads: 1,000 Releases of a namespace
// are orphaned, not uninstalled, and the namespace goes: the log says how soon.
func TestADeletedNamespaceOfTheHubLeavesWorkloads(t *testing.T) {
	ctx := within(t, 2*patience)
	const ns, count = "thousand", 1000
	files := map[string]string{}
	for i := range count {
		name := fmt.Sprintf("r-%04d", i)
		files[name+"/cm.yaml"] = configMap(ns, name, "a", "1")
	}
	a := newApp(ctx, t, ns, files)
	hub := shared.hub.Plane
	if _, err := hub.Kubectl(ctx, "create", "namespace", ns); err != nil {
		t.Fatal(err)
	}
	if err := shared.hub.Source(ctx, shared.git, ns, a.name, metav1.Duration{Duration: time.Minute}); err != nil {
		t.Fatal(err)
	}
	// References stay inside a namespace, so that this one needs its own Cluster.
	plane := harness.T(t, harness.Options{Name: "edge-2", UnsafeNoFsync: true})
	second, err := shared.hub.Join(ctx, plane, ns, "edge-2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Kubectl(ctx, "create", "namespace", ns); err != nil {
		t.Fatal(err)
	}
	objects := make([]*corev1alpha1.Release, 0, count)
	for i := range count {
		name := fmt.Sprintf("r-%04d", i)
		objects = append(objects, install.Release(ns, name, second.Name, a.name, name))
	}
	start := time.Now()
	if err := shared.hub.Create(ctx, objects...); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		name := fmt.Sprintf("r-%04d", i)
		if _, err := harness.WaitFor(ctx, hub.Dynamic(), install.Releases, ns, name, harness.HasCondition("Ready", "True", "")); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("all Ready after %s", time.Since(start).Round(100*time.Millisecond))
	// The host refuses an Event whose namespace began to end between the hub's look
	// and its write. The queue of Events has to be empty, or the audit log shows it.
	eventsAreQuiet(ctx, t, ns)
	start = time.Now()
	if _, err := hub.Kubectl(ctx, "delete", "namespace", ns, "--timeout=4m"); err != nil {
		t.Fatal(err)
	}
	t.Logf("a namespace with %d Releases was gone after %s", count, time.Since(start).Round(100*time.Millisecond))
	list, err := second.Plane.Dynamic().Resource(configMaps).Namespace(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := 0
	for _, item := range list.Items {
		if strings.HasPrefix(item.GetName(), "r-") && item.GetDeletionTimestamp() == nil {
			have++
		}
	}
	if have != count {
		t.Errorf("%d of %d objects are left on the edge", have, count)
	}
}

// eventsAreQuiet returns when no Event has been written in a namespace of the hub
// for five seconds.
func eventsAreQuiet(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	const quiet = 5 * time.Second
	w, err := shared.hub.Plane.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case _, open := <-w.ResultChan():
			if !open {
				t.Fatalf("the watch of Events in %s ended: %v", ns, context.Cause(ctx))
			}
			timer.Reset(quiet)
		case <-timer.C:
			return
		case <-ctx.Done():
			t.Fatalf("Events are still written in %s: %v", ns, context.Cause(ctx))
		}
	}
}
