// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
	"kumodo.io/convoy/pkg/tunnel"
)

// quiet is how long nothing may happen after something that must not cause any.
const quiet = 5 * time.Second

// stored are the kinds that a hub writes.
var stored = []schema.GroupVersionResource{install.Releases, install.Inventories, install.Clusters}

// One hub on one install, which loses more from chapter to chapter. Each stands on what is
// there after the one before, so the first that fails ends the story.
func TestHA03WhateverAHubLosesStopsNothing(t *testing.T) {
	for _, chapter := range []struct {
		name string
		test func(*testing.T)
	}{
		{"a restart applies nothing and writes nothing", restart},
		{"HA-03: a hub that is restored from an older copy holds still", olderCopy},
		{"a lost store is fetched back from agents", lostStore},
		{"a lost etcd leaves what runs and lists it", lostEtcd},
		{"lost keys stop nothing and a new join brings agents back", lostKeys},
	} {
		if !t.Run(chapter.name, chapter.test) {
			t.Fatal("what follows stands on this and was not tried")
		}
	}
}

func restart(t *testing.T) {
	ctx := deadline(t)
	releases := make([]*corev1alpha1.Release, many)
	for i := range releases {
		releases[i] = release(fmt.Sprintf("many-%03d", i), edge1, fmt.Sprintf("many/%03d", i))
	}
	must(t, hub.Create(ctx, releases...))
	eventually(ctx, t, "all Releases are ready", func() bool {
		list, err := hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).List(ctx, metav1.ListOptions{})
		must(t, err)
		for i := range list.Items {
			r, err := harness.As[corev1alpha1.Release](&list.Items[i])
			must(t, err)
			if !ready(r) {
				return false
			}
		}
		return true
	})
	versions := func() map[string]string {
		out := map[string]string{}
		for _, gvr := range stored {
			list, err := hub.Plane.Dynamic().Resource(gvr).Namespace(team).List(ctx, metav1.ListOptions{})
			must(t, err)
			for _, item := range list.Items {
				out[gvr.Resource+"/"+item.GetName()] = item.GetResourceVersion()
			}
		}
		return out
	}
	// Reports that were still on their way are written.
	must(t, harness.Settled(ctx, hub.Plane.Dynamic(), quiet, team, stored...))
	before := versions()
	since := time.Now()
	away(ctx, t, func() {})
	sessions(ctx, t, 2)
	if err := harness.HoldsStill(ctx, hub.Plane.Dynamic(), quiet, team, stored...); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("written by a restart (-before +after):\n%s", diff)
	}
	for _, event := range changesOn(t, edge1, since) {
		t.Errorf("needless: %s", event)
	}
	if made := sum(ctx, t, hub.MetricsURL(), "convoy_controller_renders_total"); made != 0 {
		t.Errorf("%v renders", made)
	}
}

func olderCopy(t *testing.T) {
	ctx := deadline(t)
	apply(ctx, t, release("r1", edge1, "v1"))
	until(ctx, t, "r1", ready)
	backup := filepath.Join(t.TempDir(), "backup")
	away(ctx, t, func() { replace(ctx, t, dataDir(), backup) })
	sessions(ctx, t, 2)

	apply(ctx, t, release("r1", edge1, "v2"), release("r2", edge1, "second"))
	until(ctx, t, "r2", ready)
	onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", value("2"))
	lost := until(ctx, t, "r1", ready)
	app := onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", exists)
	data := onEdge(ctx, t, edge1, claims, "t-ha-03", "data", exists)
	second := onEdge(ctx, t, edge1, configMaps, "t-ha-03", "second", exists)

	must(t, hub.Pod.Kill9(ctx))
	since := time.Now()
	away(ctx, t, func() { replace(ctx, t, backup, dataDir()) })

	// Both sides say so.
	cluster := untilCluster(ctx, t, edge1, func(c *corev1alpha1.Cluster) bool { return behind(c) && len(c.Status.UnknownReleases) == 1 })
	if unknown := cluster.Status.UnknownReleases[0]; unknown.Namespace != team || unknown.Name != "r2" || cluster.Status.UnknownReleaseCount != 1 {
		t.Errorf("unknown: %+v", unknown)
	}
	held := until(ctx, t, "r1", func(r *corev1alpha1.Release) bool {
		return r.Status.Adopted != nil && has(r, "Applied", "True", "HubBehind")
	})
	if held.Status.Sequence != lost.Status.Sequence || held.Status.RenderRef != lost.Status.RenderRef || held.Status.AppliedRef != lost.Status.RenderRef ||
		held.Spec.Content.Path != "v1" || !has(held, "Ready", "True", "Ready") {
		t.Errorf("spec %+v, status %+v", held.Spec.Content, held.Status)
	}
	eventually(ctx, t, "the agent says that the hub is behind", func() bool {
		return sum(ctx, t, edges[edge1].MetricsURL(), "convoy_engine_releases_unknown_to_hub") == 1 &&
			sum(ctx, t, edges[edge1].MetricsURL(), "convoy_link_held_orders_total") >= 2
	})
	// And it holds still.
	if err := harness.HoldsStill(ctx, edges[edge1].Plane.Dynamic(), quiet, "t-ha-03", configMaps, claims); err != nil {
		t.Error(err)
	}
	same(t, app, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", value("2")), true)
	same(t, data, onEdge(ctx, t, edge1, claims, "t-ha-03", "data", exists), false)
	same(t, second, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "second", exists), true)
	for _, event := range changesOn(t, edge1, since) {
		t.Errorf("applied although nobody asked: %s", event)
	}

	// The hub moves on: the change is applied, and nothing is lost by it.
	apply(ctx, t, release("r1", edge1, "v3"))
	same(t, app, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", value("3")), false)
	next := until(ctx, t, "r1", ready)
	if next.Status.Adopted != nil || next.Status.Sequence <= lost.Status.Sequence || !has(next, "Applied", "True", "Applied") {
		t.Errorf("status %+v", next.Status)
	}
	same(t, data, onEdge(ctx, t, edge1, claims, "t-ha-03", "data", exists), false)

	// A Release made anew under its name takes the objects over.
	apply(ctx, t, release("r2", edge1, "second"))
	until(ctx, t, "r2", ready)
	same(t, second, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "second", exists), false)
	untilCluster(ctx, t, edge1, func(c *corev1alpha1.Cluster) bool { return !behind(c) && c.Status.UnknownReleaseCount == 0 })
}

func lostStore(t *testing.T) {
	ctx := deadline(t)
	apply(ctx, t, release("shared-1", edge1, "shared"), release("shared-2", edge2, "shared"))
	until(ctx, t, "shared-1", ready)
	before := until(ctx, t, "shared-2", ready)
	plane := edges[edge2].Plane

	// The store is lost while the hub is down, and what edge-2 has of convoy with it.
	away(ctx, t, func() {
		must(t, edges[edge2].Pod.Stop(ctx))
		lose(t, "renders")
		must(t, forget(ctx, edge2))
		_, err := plane.Kubectl(ctx, "-n", "shared", "delete", "configmap", "shared")
		must(t, err)
	})
	sessions(ctx, t, 1)
	must(t, edges[edge2].Run(ctx))
	onEdge(ctx, t, edge2, configMaps, "shared", "shared", value("1"))
	after := until(ctx, t, "shared-2", ready)
	if after.Status.InputsHash != before.Status.InputsHash || after.Status.RenderRef != before.Status.RenderRef || after.Status.Sequence != before.Status.Sequence {
		t.Errorf("another render: %+v, was %+v", after.Status, before.Status)
	}
	if made := sum(ctx, t, hub.MetricsURL(), "convoy_controller_renders_total"); made != 0 {
		t.Errorf("%v renders", made)
	}
	if done := sum(ctx, t, hub.MetricsURL(), "convoy_store_recoveries_total", `result="done"`); done != 1 {
		t.Errorf("%v layers were fetched back, want 1", done)
	}
}

func lostEtcd(t *testing.T) {
	ctx := deadline(t)
	app := onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", value("3"))
	second := onEdge(ctx, t, edge1, configMaps, "t-ha-03", "second", exists)
	shared := onEdge(ctx, t, edge1, configMaps, "shared", "shared", exists)
	since := time.Now()
	away(ctx, t, func() { lose(t, "etcd") })

	// Clusters and sources are described again, and the agents join again.
	must(t, describeSource(ctx))
	join(ctx, t, edge1, "--create")
	join(ctx, t, edge2, "--create")
	// r2 twice: the agent remembers the one that was made anew, too.
	cluster := untilCluster(ctx, t, edge1, func(c *corev1alpha1.Cluster) bool { return c.Status.UnknownReleaseCount == many+4 })
	if len(cluster.Status.UnknownReleases) != 16 || !behind(cluster) {
		t.Errorf("status %+v", cluster.Status)
	}
	untilCluster(ctx, t, edge2, behind)
	for _, event := range changesOn(t, edge1, since) {
		t.Errorf("changed although nobody asked: %s", event)
	}

	// Releases made again take the objects over.
	apply(ctx, t, release("r1", edge1, "v3"), release("r2", edge1, "second"), release("shared-1", edge1, "shared"), release("shared-2", edge2, "shared"))
	for _, name := range []string{"r1", "r2", "shared-1", "shared-2"} {
		until(ctx, t, name, ready)
	}
	same(t, app, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", value("3")), false)
	same(t, second, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "second", exists), false)
	same(t, shared, onEdge(ctx, t, edge1, configMaps, "shared", "shared", exists), false)
	untilCluster(ctx, t, edge1, func(c *corev1alpha1.Cluster) bool { return c.Status.UnknownReleaseCount == many })
	untilCluster(ctx, t, edge2, func(c *corev1alpha1.Cluster) bool { return !behind(c) })
	deleted, err := edges[edge1].Plane.Kubectl(ctx, "-n", "many", "get", "configmaps", "-o", "name")
	must(t, err)
	if !containsAll(deleted) {
		t.Errorf("objects of Releases that the hub lost are gone; left are:\n%s", deleted)
	}
}

func lostKeys(t *testing.T) {
	ctx := deadline(t)
	app := onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", exists)
	shared := onEdge(ctx, t, edge2, configMaps, "shared", "shared", exists)
	away(ctx, t, func() {
		_, err := hub.Plane.Kubectl(ctx, "-n", install.HubNamespace, "delete", "secret",
			"convoy-hub-ca", "convoy-order-key", "convoy-sealing-key", "convoy-mac-key", "convoy-serving-ca")
		must(t, err)
		must(t, hub.Apply(ctx))
	})
	join(ctx, t, edge1)
	join(ctx, t, edge2)

	// Agents go on enforcing meanwhile.
	for _, edge := range []string{edge1, edge2} {
		_, err := edges[edge].Plane.Kubectl(ctx, "-n", "shared", "patch", "configmap", "shared", "--type=merge", "-p", `{"data":{"v":"by hand"}}`)
		must(t, err)
		onEdge(ctx, t, edge, configMaps, "shared", "shared", value("1"))
	}
	// And come back with the token.
	sessions(ctx, t, 2)
	for _, name := range []string{"r1", "r2", "shared-1", "shared-2"} {
		r := until(ctx, t, name, func(r *corev1alpha1.Release) bool { return ready(r) && has(r, "Applied", "True", "Applied") })
		if _, err := tunnel.ParseOrder([]byte(r.Status.Order.Payload)); err != nil {
			t.Error(err)
		}
	}
	same(t, app, onEdge(ctx, t, edge1, configMaps, "t-ha-03", "app", exists), false)
	same(t, shared, onEdge(ctx, t, edge2, configMaps, "shared", "shared", exists), false)
	apply(ctx, t, release("shared-2", edge2, "next"))
	same(t, shared, onEdge(ctx, t, edge2, configMaps, "shared", "shared", value("2")), false)
	deleted, err := edges[edge1].Plane.Kubectl(ctx, "-n", "many", "get", "configmaps", "-o", "name")
	must(t, err)
	if !containsAll(deleted) {
		t.Errorf("objects are gone; left are:\n%s", deleted)
	}
}

// containsAll says whether a list of names has all objects of the many Releases.
func containsAll(names string) bool {
	for i := range many {
		if !strings.Contains(names, fmt.Sprintf("configmap/one-%03d\n", i)) {
			return false
		}
	}
	return true
}
