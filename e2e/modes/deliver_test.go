// SPDX-License-Identifier: Apache-2.0

package modes_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestModes goes through the life of a Release in each mode, and then of its
// Cluster.
func TestModes(t *testing.T) {
	t.Run("agentless", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		at, _ := agentless(ctx, t, "edge", shared.edge)
		life(t, at)
		t.Run("a second Cluster for the same target is refused", func(t *testing.T) {
			ctx := deadline(t)
			kubeconfig, _ := account(ctx, t, shared.edge, "twin")
			secret(ctx, t, "twin", kubeconfig)
			apply(ctx, t, cluster("twin"))
			waitCluster(ctx, t, "twin", "False", corev1alpha1.ReasonClusterConflict, "Cluster edge stands for that cluster already")
			remove(ctx, t, install.Clusters, "twin")
		})
		t.Run("credentials are rotated", func(t *testing.T) { rotate(t, at) })
		end(t, at)
		asWhom(t, at, "system:serviceaccount:kube-system:edge", "system:serviceaccount:kube-system:twin", "system:serviceaccount:kube-system:rotated")
	})
	t.Run("inCluster", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		at := place{"here", shared.hub.Plane}
		apply(ctx, t, cluster(at.name, inCluster))
		// The shipped manifests give the hub no right on its host but for its own work.
		waitCluster(ctx, t, at.name, "False", corev1alpha1.ReasonProbeFailed, "may not impersonate the ServiceAccount convoy-system/convoy-deployer")
		root, err := harness.RepoRoot()
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := os.ReadFile(filepath.Join(root, "manifests", "hub", "overlays", "in-cluster", "rbac.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shared.hub.Plane.KubectlInput(ctx, string(overlay), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		waitCluster(ctx, t, at.name, "True", corev1alpha1.ReasonConnected, "")
		life(t, at)
		end(t, at)
	})
}

// life of a Release: delivered, healed, changed, deleted.
func life(t *testing.T, at place) {
	t.Helper()
	ctx := deadline(t)
	a := newApp(ctx, t, "life-"+at.name, "a", "1", "b", "2")
	a.to(ctx, t, at)
	a.ready(ctx, t, "")
	a.live(ctx, t, at.plane, "a", "1")

	a.edit(ctx, t, at.plane, "a", "edited")
	a.live(ctx, t, at.plane, "a", "1")
	a.until(ctx, t, "healed", func(r *corev1alpha1.Release) bool {
		ok, _ := condition(r.Status.Conditions, corev1alpha1.ConditionReady, "True", "")
		return ok && r.Status.LastOperation != nil && r.Status.LastOperation.Type == corev1alpha1.OperationHeal
	})

	commit := a.commit(ctx, t, "a", "2")
	a.sync(ctx, t)
	a.ready(ctx, t, commit)
	a.live(ctx, t, at.plane, "a", "2")

	remove(ctx, t, install.Releases, a.name)
	if err := harness.WaitGone(ctx, at.plane.Dynamic(), configMaps, a.name, "settings"); err != nil {
		t.Errorf("a Release was deleted, and what it applied is there: %v", err)
	}
}

// rotate gives the hub other credentials and ends the old ones.
func rotate(t *testing.T, at place) {
	t.Helper()
	ctx := deadline(t)
	a := newApp(ctx, t, "rotate-"+at.name, "a", "1")
	a.to(ctx, t, at)
	a.ready(ctx, t, "")
	kubeconfig, _ := account(ctx, t, at.plane, "rotated")
	secret(ctx, t, at.name, kubeconfig)
	if err := at.plane.Client().CoreV1().Secrets("kube-system").Delete(ctx, at.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A call of the engine finds that it is not let in, upon which the Secret is looked
	// at again; nobody has to wait for the next resync. An API server may let a token
	// pass for some seconds after its end.
	repaired := func(ctx context.Context) (bool, error) {
		a.edit(ctx, t, at.plane, "a", "edited")
		a.live(ctx, t, at.plane, "a", "1")
		calls, err := harness.AuditAll(at.plane.AuditLog(), harness.ByUser("system:serviceaccount:kube-system:rotated"), harness.AboutResource("", "configmaps"), harness.WithVerb("patch"))
		return len(calls) > 0, err
	}
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, repaired); err != nil {
		t.Fatalf("nothing is repaired with the new credentials: %v", err)
	}
	waitCluster(ctx, t, at.name, "True", corev1alpha1.ReasonConnected, "")
	a.ready(ctx, t, "")
	remove(ctx, t, install.Releases, a.name)
}

// end deletes the Cluster: its Releases and what they applied stay, nobody repairs.
func end(t *testing.T, at place) {
	t.Helper()
	ctx := deadline(t)
	a := newApp(ctx, t, "end-"+at.name, "a", "1")
	a.to(ctx, t, at)
	a.ready(ctx, t, "")
	before := a.live(ctx, t, at.plane, "a", "1")
	remove(ctx, t, install.Clusters, at.name)
	a.until(ctx, t, "not heard of", func(r *corev1alpha1.Release) bool {
		ok, _ := condition(r.Status.Conditions, corev1alpha1.ConditionInSync, "Unknown", corev1alpha1.ReasonClusterNotReady)
		return ok
	})
	if after := a.live(ctx, t, at.plane, "a", "1"); after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("what a Release had applied was touched when its Cluster was deleted")
	}
	remove(ctx, t, install.Releases, a.name)
	if _, err := at.plane.Dynamic().Resource(configMaps).Namespace(a.name).Get(ctx, "settings", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("a Release without a Cluster was deleted, and what it had applied is gone")
	} else if err != nil {
		t.Fatal(err)
	}
}

// asWhom reads in the audit log that the engine acts as who its kubeconfig says.
func asWhom(t *testing.T, at place, users ...string) {
	t.Helper()
	events, err := harness.AuditAll(at.plane.AuditLog(), harness.ByAgent(userAgent))
	if err != nil || len(events) == 0 {
		t.Fatalf("%d calls, %v", len(events), err)
	}
	allowed := map[string]bool{"": true} // not let in
	for _, user := range users {
		allowed[user] = true
	}
	for _, event := range events {
		if !allowed[event.User] || event.Masters() {
			t.Errorf("a call as somebody else: %s", event)
		}
	}
}
