// SPDX-License-Identifier: Apache-2.0

package modes_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/install"
)

// TestALostLayerIsHadBackFromAnEngineOfTheHub: the store is lost while the hub is down,
// and what the engine of one target keeps with it; another engine has the layer.
func TestALostLayerIsHadBackFromAnEngineOfTheHub(t *testing.T) {
	ctx := deadline(t)
	holder, _ := agentless(ctx, t, "holder", shared.edge)
	taker, _ := agentless(ctx, t, "taker", shared.fails)
	a := newApp(ctx, t, "lost", "a", "1")
	a.to(ctx, t, holder)
	held := a.ready(ctx, t, "")
	if _, err := taker.plane.Kubectl(ctx, "create", "namespace", a.name); err != nil {
		t.Fatal(err)
	}
	apply(ctx, t, install.Release(team, "lost-twin", taker.name, a.name, "app"))
	twin := &app{name: "lost-twin", repo: a.repo}
	if r := twin.ready(ctx, t, ""); r.Status.RenderRef != held.Status.RenderRef {
		t.Fatalf("renders %s and %s are not the same", r.Status.RenderRef, held.Status.RenderRef)
	}

	hub := shared.hub
	if err := hub.Pod.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	volume := filepath.Join(filepath.Dir(hub.Plane.Dir()), "claims", install.HubNamespace, "convoy-hub", "hub")
	if _, err := os.Stat(filepath.Join(volume, "renders", "blobs")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(volume, "renders")); err != nil {
		t.Fatal(err)
	}
	forget(ctx, t, taker)
	if _, err := taker.plane.Kubectl(ctx, "-n", a.name, "delete", "configmap", "settings"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context) error{hub.Run, hub.WaitReady, hub.WaitServed} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	a.live(ctx, t, taker.plane, "a", "1")
	if after := twin.until(ctx, t, "Ready", func(r *corev1alpha1.Release) bool {
		ok, _ := condition(r.Status.Conditions, corev1alpha1.ConditionReady, "True", "")
		return ok
	}); after.Status.RenderRef != held.Status.RenderRef {
		t.Errorf("it runs another render: %s, was %s", after.Status.RenderRef, held.Status.RenderRef)
	}
	if !fetchedBack(ctx, t) {
		t.Error("no layer was fetched back")
	}
	remove(ctx, t, install.Releases, "lost-twin")
	remove(ctx, t, install.Releases, a.name)
	remove(ctx, t, install.Clusters, taker.name)
	remove(ctx, t, install.Clusters, holder.name)
}

// forget deletes what the engine keeps on its target.
func forget(ctx context.Context, t *testing.T, at place) {
	t.Helper()
	secrets := at.plane.Client().CoreV1().Secrets(install.AgentNamespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "convoy.kumodo.io/state"})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("%d Secrets, %v", len(list.Items), err)
	}
	for _, secret := range list.Items {
		if err := secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// fetchedBack says whether the hub counts a layer that it had back.
func fetchedBack(ctx context.Context, t *testing.T) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.hub.MetricsURL(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, count, ok := strings.Cut(lines.Text(), "} ")
		if ok && strings.HasPrefix(name, "convoy_store_recoveries_total{") && strings.Contains(name, `result="done"`) && count != "0" {
			return true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return false
}
