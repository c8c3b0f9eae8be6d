// SPDX-License-Identifier: Apache-2.0

package order_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func wave(n int32) func(*corev1alpha1.ReleaseSpec) {
	return func(s *corev1alpha1.ReleaseSpec) { s.ClusterWave = n }
}

func (a *app) after(folders ...string) func(*corev1alpha1.ReleaseSpec) {
	return func(s *corev1alpha1.ReleaseSpec) {
		for _, folder := range folders {
			s.DependsOn = append(s.DependsOn, corev1alpha1.ReleaseReference{Name: a.named(folder)})
		}
	}
}

// It is no parallel test: what the Cluster permits would hold for the others.
func TestWhatAClusterPermitsHoldsAtHubAndEdge(t *testing.T) {
	a := newApp(t, "permitted", map[string]string{"app/cm.yaml": configMap("one", "1")})
	permit := func(allowed string) {
		t.Helper()
		a.onHub("-n", team, "patch", "cluster", edge, "--type=merge", "-p", `{"spec":{"allowed":`+allowed+`}}`)
	}
	defer permit("null")
	permit(`{"targetNamespaces":["shop-*"]}`)
	a.release("app")
	a.says("app", "False", "Forbidden", `spec.allowed.targetNamespaces of Cluster "edge-1" does not permit the namespace "permitted"`)
	if a.has("one") {
		t.Error("it was applied all the same")
	}
	permit(`{"targetNamespaces":["perm*"],"clusterScopedKinds":[]}`)
	a.ready("app", "")
	a.value("one", "a", "1")
	// Of single objects the edge decides, and applies nothing of the render.
	a.commit(map[string]string{
		"app/cm.yaml":   configMap("one", "2"),
		"app/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: permitted-much}\nrules: []\n",
	})
	a.until("app", func(r *corev1alpha1.Release) bool {
		for _, c := range r.Status.Conditions {
			if c.Type == "Applied" && c.Status == "False" && strings.Contains(c.Message, "clusterScopedKinds") {
				return true
			}
		}
		return false
	})
	a.value("one", "a", "1")
	permit(`{"clusterScopedKinds":["ClusterRole.rbac.authorization.k8s.io"]}`)
	a.value("one", "a", "2")
}

func TestReleasesOfHigherWavesWaitForLowerOnes(t *testing.T) {
	t.Parallel()
	a := newApp(t, "waves", map[string]string{"base/cm.yaml": refused("base"), "app/cm.yaml": configMap("app", "1")})
	a.release("base", wave(-7))
	a.says("base", "False", "DryRunFailed", "")
	a.release("app", wave(-6))
	a.says("app", "False", "WaitingForWave", `"waves-base" of clusterWave -7: Applied is False: DryRunFailed`)
	if a.has("app") {
		t.Error("app was applied before base")
	}
	commit := a.commit(map[string]string{"base/cm.yaml": configMap("base", "1"), "app/cm.yaml": configMap("app", "1")})
	a.ready("base", commit)
	a.ready("app", "")

	// An upgrade of both, of which the lower one fails.
	a.commit(map[string]string{"base/cm.yaml": refused("base"), "app/cm.yaml": configMap("app", "2")})
	a.says("app", "False", "WaitingForWave", "waves-base")
	a.says("base", "False", "DryRunFailed", "")
	a.value("app", "a", "1")
	commit = a.commit(map[string]string{"base/cm.yaml": configMap("base", "3"), "app/cm.yaml": configMap("app", "3")})
	a.ready("app", commit)
	a.value("base", "a", "3")
}

func TestAChainOfDependenciesIsAppliedInItsOrder(t *testing.T) {
	t.Parallel()
	files := func(version string) map[string]string {
		return map[string]string{"web/cm.yaml": configMap("web", version), "db/cm.yaml": configMap("db", version), "net/cm.yaml": configMap("net", version)}
	}
	a := newApp(t, "chain", files("1"))
	a.release("web", a.after("db"))
	a.says("web", "False", "DependencyNotReady", `"chain-db": there is none`)
	a.release("db", a.after("net"))
	a.says("db", "False", "DependencyNotReady", `"chain-net": there is none`)
	_, err := world.hub.Plane.KubectlInput(a.ctx, fmt.Sprintf(
		`{apiVersion: core.convoy.kumodo.io/v1alpha1, kind: Release, metadata: {name: chain-net}, spec: {clusterRef: {name: %s}, source: {kind: GitRepository, name: chain}, dependsOn: [{name: chain-web}]}}`, edge),
		"-n", team, "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "chain-net dependsOn chain-web, chain-web dependsOn chain-db, chain-db dependsOn chain-net") {
		t.Errorf("a circle: %v", err)
	}
	a.release("net")
	first := []int64{a.ready("net", "").Status.History[0].Sequence, a.ready("db", "").Status.History[0].Sequence, a.ready("web", "").Status.History[0].Sequence}
	commit := a.commit(files("2"))
	second := []int64{a.ready("net", commit).Status.History[0].Sequence, a.ready("db", commit).Status.History[0].Sequence, a.ready("web", commit).Status.History[0].Sequence}
	for _, sequences := range [][]int64{first, second} {
		if sequences[0] >= sequences[1] || sequences[1] >= sequences[2] {
			t.Errorf("ordered at %v, want net, db, web", sequences)
		}
	}
}

func TestASuspendedReleaseIsNeitherUpgradedNorRepaired(t *testing.T) {
	t.Parallel()
	a := newApp(t, "suspended", map[string]string{"app/cm.yaml": configMap("one", "1")})
	a.release("app")
	a.ready("app", "")
	a.patch("app", `{"suspend":true}`)
	sequence := a.says("app", "False", "Suspended", "spec.suspend").Status.Sequence
	// The agent has taken note when it says so of that order.
	a.until("app", func(r *corev1alpha1.Release) bool {
		return r.Status.LastOperation != nil && r.Status.LastOperation.Sequence >= sequence && r.Status.LastOperation.Phase == "Succeeded"
	})
	a.onEdge("-n", a.name, "patch", "configmap", "one", "--type=merge", "-p", `{"data":{"a":"by hand"}}`)
	a.until("app", func(r *corev1alpha1.Release) bool { return is(r, "InSync", "False", "Drifted", "") })
	if _, err := world.hub.Plugin(a.ctx, "-n", team, "sync", a.named("app")); err == nil || !strings.Contains(err.Error(), "spec.suspend") {
		t.Errorf("a sync: %v", err)
	}
	commit := a.commit(map[string]string{"app/cm.yaml": configMap("one", "2")})
	a.value("one", "a", "by hand")
	a.patch("app", `{"suspend":false}`)
	a.ready("app", commit)
	a.value("one", "a", "2")
}

func TestDeletionsBeyondTheBudgetWaitForAConfirmation(t *testing.T) {
	t.Parallel()
	files := map[string]string{"app/kept.yaml": configMap("kept", "1")}
	for i := range 25 {
		files[fmt.Sprintf("app/cm-%02d.yaml", i)] = configMap(fmt.Sprintf("cm-%02d", i), "1")
	}
	a := newApp(t, "budget", files)
	a.release("app")
	a.ready("app", "")
	a.commit(map[string]string{"app/kept.yaml": configMap("kept", "2")})
	held := a.says("app", "False", "PruneHeld", "")
	a.value("kept", "a", "2")
	if h := held.Status.HeldPrune; h == nil || h.Count != 25 || h.Total != 26 || len(h.Objects) != 10 || h.Digest == "" {
		t.Fatalf("heldPrune: %+v", held.Status.HeldPrune)
	}
	if !a.has("cm-00") {
		t.Fatal("it was deleted without a confirmation")
	}
	out, err := world.hub.Plugin(a.ctx, "-n", team, "sync", a.named("app"), "--confirm-deletions", "--wait", "--timeout", "2m")
	if err != nil || !strings.Contains(out, "deletes 25 of 26 objects") || !strings.Contains(out, "and 15 more") {
		t.Errorf("%v: %s", err, out)
	}
	r := a.ready("app", "")
	if a.has("cm-00") || a.has("cm-24") || !a.has("kept") || r.Status.HeldPrune != nil {
		t.Errorf("what was confirmed is not what was deleted; heldPrune %+v", r.Status.HeldPrune)
	}
}

func TestAnAccountWithTooFewRightsIsNamed(t *testing.T) {
	t.Parallel()
	a := newApp(t, "account", map[string]string{"app/cm.yaml": configMap("one", "1")})
	a.onEdge("-n", a.name, "create", "serviceaccount", "deployer")
	a.release("app", func(s *corev1alpha1.ReleaseSpec) { s.ServiceAccountName = "deployer" })
	a.until("app", func(r *corev1alpha1.Release) bool {
		for _, c := range r.Status.Conditions {
			if c.Type == "Applied" && c.Status == "False" && strings.Contains(c.Message, "system:serviceaccount:account:deployer") {
				return true
			}
		}
		return false
	})
	if a.has("one") {
		t.Error("it was applied with other rights")
	}
	a.onEdge("-n", a.name, "create", "rolebinding", "deployer", "--clusterrole=admin", "--serviceaccount=account:deployer")
	a.onEdge("create", "clusterrole", "account-namespaces", "--verb=get,list,watch,create,patch", "--resource=namespaces")
	a.onEdge("create", "clusterrolebinding", "account-namespaces", "--clusterrole=account-namespaces", "--serviceaccount=account:deployer")
	if _, err := world.hub.Plugin(a.ctx, "-n", team, "sync", a.named("app")); err != nil {
		t.Fatal(err)
	}
	a.ready("app", "")

	// It is removed with these rights too, although an object was made anew meanwhile.
	a.onEdge("-n", a.name, "delete", "configmap", "one")
	a.value("one", "a", "1")
	a.onHub("-n", team, "delete", "release", a.named("app"), "--timeout=120s")
	if a.has("one") {
		t.Error("it was not removed")
	}
}

func TestABadRevisionIsTriedAsOftenAsItSaysAndNeverHoldsUpTheNext(t *testing.T) {
	t.Parallel()
	a := newApp(t, "retries", map[string]string{"few/cm.yaml": refused("few"), "rare/cm.yaml": refused("rare")})
	retry := func(limit *int32, pause time.Duration) func(*corev1alpha1.ReleaseSpec) {
		return func(s *corev1alpha1.ReleaseSpec) {
			s.SyncPolicy.Retry = corev1alpha1.RetryPolicy{Limit: limit, Minimum: &metav1.Duration{Duration: pause}, Maximum: &metav1.Duration{Duration: pause}}
		}
	}
	a.release("few", retry(ptr.To[int32](1), time.Second))
	a.release("rare", retry(nil, 24*time.Hour))
	a.says("few", "False", "RetriesExhausted", "gave up after 2 attempts, a sync starts again: DryRunFailed")
	a.says("rare", "False", "DryRunFailed", "")
	if _, err := world.hub.Plugin(a.ctx, "-n", team, "sync", a.named("few"), "--wait", "--timeout", "1m"); err == nil || !strings.Contains(err.Error(), "the sync failed") {
		t.Errorf("a sync: %v", err)
	}
	commit := a.commit(map[string]string{"few/cm.yaml": configMap("few", "1"), "rare/cm.yaml": configMap("rare", "1")})
	a.ready("few", commit)
	a.ready("rare", commit)
}
