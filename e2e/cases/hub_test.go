// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestHA01LookAlikeNamesAreNeverTakenForEachOther plays the case: clusters edge, edge-a
// and edge-a-b with Releases a-b, b and two of 63 characters on each.
func TestHA01LookAlikeNamesAreNeverTakenForEachOther(t *testing.T) {
	t.Parallel()
	// Ten minutes at CONVOY_SOAK=1; taking turns would show within seconds.
	calm := 20 * time.Second
	if soak() {
		calm = 10 * time.Minute
	}
	p := play(t, "HA-01", 8*time.Minute+calm)
	p.step("setup")
	if len(p.targets) != 3 || p.targets[1].cluster != "edge-a" || p.targets[2].cluster != "edge-a-b" {
		t.Fatalf("%d clusters", len(p.targets))
	}
	p.step("edge-release-a-b", "edge-release-b", "long-one", "long-two")
	names := []string{"from-a-b", "from-b", "long-1", "long-2"}
	live := map[*target][]*unstructured.Unstructured{}
	owners := map[string]string{}
	for _, target := range p.targets {
		for i, name := range names {
			object := p.live(target, "configmap", name)
			live[target] = append(live[target], object)
			// Every object says whose it is, and no two Releases say the same.
			owner, of := object.GetAnnotations()[corev1alpha1.AnnotationOwner], fmt.Sprintf("Release %d of %s", i, target.cluster)
			if owner == "" || owners[owner] != "" {
				t.Errorf("%s and %s are both owned by %q", of, owners[owner], owner)
			}
			owners[owner] = of
		}
		if got := p.releases[2].name; len(got) != 63 {
			t.Errorf("the long name has %d characters", len(got))
		}
	}
	if err := p.pass(p.ctx, calm); err != nil {
		t.Fatal(err)
	}
	for _, target := range p.targets {
		for _, object := range live[target] {
			p.same(target, object)
			if now := p.live(target, "configmap", object.GetName()); now.GetResourceVersion() != object.GetResourceVersion() {
				t.Errorf("ConfigMap %s on %s was written", object.GetName(), target.cluster)
			}
		}
	}
	p.step("apart")

	// Cluster edge-a goes, with its Releases: the others are not touched.
	removed := p.targets[1]
	hub := p.world.Hub.Plane
	if _, err := hub.Kubectl(p.ctx, "-n", removed.namespace, "delete", "cluster", removed.cluster, "--timeout=180s"); err != nil {
		t.Fatal(err)
	}
	if err := p.pass(p.ctx, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, target := range []*target{p.targets[0], p.targets[2]} {
		for _, object := range live[target] {
			p.same(target, object)
		}
		for _, r := range p.releases {
			p.is(target, r.name, corev1alpha1.ConditionReady, "True", "")
		}
	}
	// Release b goes: only from-b does.
	for _, target := range []*target{p.targets[0], p.targets[2]} {
		if _, err := hub.Kubectl(p.ctx, "-n", target.namespace, "delete", "release", "b", "--timeout=180s"); err != nil {
			t.Fatal(err)
		}
		p.gone(target, "configmap", "from-b")
		for i, object := range live[target] {
			if names[i] != "from-b" {
				p.same(target, object)
			}
		}
	}
}

// TestHA01TwoHubsInOneClusterAreToldApart: the second hub's agent has its own marks and
// inventory, and takes nothing of the first's.
func TestHA01TwoHubsInOneClusterAreToldApart(t *testing.T) {
	t.Parallel()
	starting, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	second, err := start(starting, shared.Edge)
	t.Cleanup(func() {
		if err := second.Close(starting); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: %s}\ndata: {k: v}\n"
	const render = "---\nstep: v1\ndo: render\n"
	first := playText(t, shared, "# id: TWO-1\n"+render+fmt.Sprintf(config, "t-two-1"))
	other := playText(t, second, "# id: TWO-2\n"+render+fmt.Sprintf(config, "t-two-2")+fmt.Sprintf(config, "t-two-1"))
	first.step("v1")
	edge := first.targets[0]
	mine := first.live(edge, "configmap", "mine")
	// The second hub's render has the first one's object: it is refused by name.
	other.step("v1")
	other.is(other.targets[0], "r1", corev1alpha1.ConditionApplied, "False", corev1alpha1.ReasonOwnedByOther)
	first.same(edge, mine)
	if _, err := second.Hub.Plane.Kubectl(other.ctx, "-n", other.targets[0].namespace, "delete", "release", "r1", "--timeout=180s"); err != nil {
		t.Fatal(err)
	}
	first.same(edge, mine)
	if now := first.live(edge, "configmap", "mine"); now.GetResourceVersion() != mine.GetResourceVersion() {
		t.Error("the second hub wrote to an object of the first")
	}
	first.is(edge, "r1", corev1alpha1.ConditionReady, "True", "")
}

// TestHA06AClusterMadeAgainIsToldFromTheOld plays the case up to the twins.
func TestHA06AClusterMadeAgainIsToldFromTheOld(t *testing.T) {
	t.Parallel()
	// The cluster will be stopped: it is not the one that other cases use.
	starting, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	own, err := shared.NewEdge(starting, "c1")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlayed(t, shared, read(t, "HA-06"), 9*time.Minute)
	p.edge = own
	p.start()
	c1 := p.targets[0]
	p.step("v1")
	old := p.live(c1, "configmap", "app")
	p.live(c1, "job", "init")
	before := p.status(c1, "r1")
	firstUID, err := kubeSystem(p.ctx, c1.cube.plane)
	if err != nil {
		t.Fatal(err)
	}

	// What the hub shows while the new cluster has not reported.
	states := p.record(c1)
	p.step("remade")
	p.step("anew")
	secondUID, err := kubeSystem(p.ctx, c1.cube.plane)
	if err != nil {
		t.Fatal(err)
	}
	cluster := p.cluster(c1)
	if cluster.Status.ClusterUID != secondUID || len(cluster.Status.FormerClusterUIDs) != 1 || cluster.Status.FormerClusterUIDs[0] != firstUID {
		t.Errorf("the hub shows cluster %s, formerly %v; want %s, formerly %s", cluster.Status.ClusterUID, cluster.Status.FormerClusterUIDs, secondUID, firstUID)
	}
	app := p.live(c1, "configmap", "app")
	if app.GetUID() == old.GetUID() {
		t.Error("this is the old cluster")
	}
	p.live(c1, "job", "init") // it was made there, and ran
	p.is(c1, "r1", corev1alpha1.ConditionReady, "True", "")
	if after := p.status(c1, "r1"); after.UID != before.UID {
		t.Error("the Release was made again")
	}
	for _, line := range states() {
		if strings.HasPrefix(line, secondUID) && strings.Contains(line, "Ready=True") && !strings.Contains(line, "applied="+p.status(c1, "r1").Status.RenderRef) {
			t.Errorf("Ready before the new cluster has reported: %s", line)
		}
	}

	// The old cluster comes back: refused, and both are named.
	p.step("twins")
	states = p.record(c1)
	naming, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err = harness.WaitFor(naming, p.world.Hub.Plane.Dynamic(), install.Clusters, c1.namespace, c1.cluster, func(u *unstructured.Unstructured) (bool, error) {
		conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		text := fmt.Sprint(conditions)
		return strings.Contains(text, firstUID) && strings.Contains(text, secondUID), err
	})
	if err != nil {
		t.Errorf("the hub does not name both clusters: %v", err)
	}
	if err := p.pass(p.ctx, 15*time.Second); err != nil {
		t.Fatal(err)
	}
	p.step("told-apart")
	if cluster := p.cluster(c1); cluster.Status.ClusterUID != secondUID {
		t.Errorf("the hub takes the old cluster %s for the one it has", cluster.Status.ClusterUID)
	}
	for _, line := range states() {
		if strings.HasPrefix(line, firstUID) {
			t.Errorf("the status went back to the old cluster: %s", line)
		}
	}
	p.same(c1, app)
	gvk, err := c1.former[0].guess("configmap")
	if err != nil {
		t.Fatal(err)
	}
	if there := p.objectOn(c1.former[0], gvk, "app"); there == nil || there.GetUID() != old.GetUID() {
		t.Error("the old cluster lost its app")
	}
}

// TestHA06AFirstSyncThatPowerLossesCutOffEndsWhole plays the case's second half: a new
// cluster whose agent is killed five times at random moments of its first sync.
func TestHA06AFirstSyncThatPowerLossesCutOffEndsWhole(t *testing.T) {
	t.Parallel()
	// A case of its own, so that both halves can be played side by side.
	c := renamed(t, read(t, "HA-06"), "b")
	c.Steps = c.Steps[:1]
	p := newPlayed(t, shared, c, 6*time.Minute)
	p.start()
	edge := p.targets[0]
	for round := range 5 {
		if round > 0 {
			// Each round is a Release that the cluster has never seen.
			if _, err := p.releaseDeleted(p.ctx, []string{"", ""}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := p.prepare(p.ctx, c.Steps[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := p.publish(p.ctx, r); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rand.Int64N(int64(400 * time.Millisecond)))
		if err := p.pass(p.ctx, delay); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		if err := edge.agent.Kill9(p.ctx); err != nil {
			t.Fatal(err)
		}
		if err := edge.agent.Start(p.ctx); err != nil {
			t.Fatal(err)
		}
		if err := p.settle(p.ctx, r); err != nil {
			t.Fatal(err)
		}
		t.Logf("killed %s after the Release was made, whole again after %s", delay.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond))
		p.live(edge, "configmap", "app")
		p.is(edge, "r1", corev1alpha1.ConditionInSync, "True", "")
		p.is(edge, "r1", corev1alpha1.ConditionReady, "True", "")
	}
}

// cluster as the hub shows it.
func (p *played) cluster(t *target) *corev1alpha1.Cluster {
	p.t.Helper()
	u, err := p.world.Hub.Plane.Dynamic().Resource(install.Clusters).Namespace(t.namespace).Get(p.ctx, t.cluster, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := harness.As[corev1alpha1.Cluster](u)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// record notes, until its function is called, every state of the Cluster and of Release
// r1 that the hub shows: identity, whether the Release is Ready, what is applied.
func (p *played) record(t *target) func() []string {
	ctx, cancel := context.WithCancel(p.ctx)
	var lines []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client := p.world.Hub.Plane.Dynamic()
			cluster, cerr := client.Resource(install.Clusters).Namespace(t.namespace).Get(ctx, t.cluster, metav1.GetOptions{})
			release, rerr := client.Resource(install.Releases).Namespace(t.namespace).Get(ctx, "r1", metav1.GetOptions{})
			if cerr == nil && rerr == nil {
				c, cerr := harness.As[corev1alpha1.Cluster](cluster)
				r, rerr := harness.As[corev1alpha1.Release](release)
				if cerr == nil && rerr == nil {
					line := fmt.Sprintf("%s Ready=%t applied=%s", c.Status.ClusterUID, met(r, corev1alpha1.ConditionReady), r.Status.AppliedRef)
					if len(lines) == 0 || lines[len(lines)-1] != line {
						lines = append(lines, line)
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollPause):
			}
		}
	}()
	return func() []string {
		cancel()
		<-done
		return lines
	}
}
