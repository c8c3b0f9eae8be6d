// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestDeletions tells three stories at once, on two edges: what becomes of a cluster
// that is away is a matter of minutes, and so is what the garbage collector of the
// host does.
func TestDeletions(t *testing.T) {
	t.Run("a Release whose owner was never there stays for a minute, and its workload", func(t *testing.T) {
		t.Parallel()
		neverOwned(within(t, 2*patience), t)
	})
	t.Run("while a cluster is away", func(t *testing.T) {
		t.Parallel()
		absent(within(t, 2*patience), t)
	})
	t.Run("while it is there", func(t *testing.T) {
		t.Parallel()
		ctx := within(t, 2*patience)
		for _, step := range []struct {
			name string
			do   func(context.Context, *testing.T)
		}{
			{"a mass delete over the budget is held, and a confirmation lets it go", massDelete},
			{"a revoked agent loses its session, and joins anew", revoke},
			{"a Cluster made anew under its name takes over what runs", recreate},
			{"a Cluster takes its Releases with it where it says so", pruneReleases},
			{"a deleted namespace orphans", orphans},
			{"a deleted namespace uninstalls where it was annotated beforehand", uninstalls},
		} {
			if !t.Run(step.name, func(t *testing.T) { step.do(ctx, t) }) {
				return // the next one starts from where this one ends
			}
		}
	})
}

// neverOwned: somebody restores a Release from a file that still names its owner of
// another time. The host's garbage collector deletes it within seconds, and would
// take the workload with it.
func neverOwned(ctx context.Context, t *testing.T) {
	ready(ctx, t, away, edge2, []string{"restored"}, func(r *corev1alpha1.Release) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "0c7d6c2e-5d0e-4b0e-9a53-0d3b0e8a7f11"}}
	})
	workload := object(ctx, t, world.far, "restored").GetUID()
	began := time.Now()
	r := until(ctx, t, away, "restored", func(r *corev1alpha1.Release) bool { return r.Status.HeldDeletion != nil })
	t.Logf("held after %s: %s", time.Since(began).Round(100*time.Millisecond), r.Status.HeldDeletion.Message)
	if h := r.Status.HeldDeletion; h.Reason != corev1alpha1.HeldByCollector || h.By != "system:serviceaccount:kube-system:generic-garbage-collector" {
		t.Errorf("held by %q because of %s", h.By, h.Reason)
	}
	watch, err := world.hub.Plane.Dynamic().Resource(install.Releases).Namespace(away).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=restored"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	minute := time.NewTimer(time.Minute)
	defer minute.Stop()
	for {
		select {
		case event, open := <-watch.ResultChan():
			if !open {
				t.Fatal("the watch ended")
			}
			if u, ok := event.Object.(*unstructured.Unstructured); ok && (event.Type == "DELETED" || u.GetDeletionTimestamp() != nil) {
				t.Fatal("the Release is being deleted")
			}
		case <-minute.C:
			if now := get(ctx, t, away, "restored"); now == nil || now.UID != r.UID {
				t.Fatal("the Release is gone")
			}
			if now := object(ctx, t, world.far, "restored").GetUID(); now != workload {
				t.Errorf("the workload is another: %s, was %s", now, workload)
			}
			return
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}

// absent: three Releases are deleted while their agent does not run.
func absent(ctx context.Context, t *testing.T) {
	ready(ctx, t, away, edge2, []string{"plain", "anew"})
	ready(ctx, t, away, edge2, []string{"blocked"}, func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.BlockOnClusterUnreachable = true })
	until(ctx, t, away, "restored", running) // of the story beside this one
	before := objects(ctx, t, world.far)
	if err := world.far.Pod.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	untilCluster(ctx, t, away, edge2, func(c *corev1alpha1.Cluster) bool { return has(c.Status.Conditions, "Ready", "False", "") })

	t.Run("a deleted Release is gone at once, and its workload stays for now", func(t *testing.T) {
		kubectl(ctx, t, "-n", away, "delete", "release", "plain", "anew", "--timeout=180s")
		if now := objects(ctx, t, world.far); now["plain"] != before["plain"] || now["anew"] != before["anew"] {
			t.Errorf("workloads now %v, were %v", now, before)
		}
	})
	t.Run("one with blockOnClusterUnreachable stays, and says why and how to let go", func(t *testing.T) {
		kubectl(ctx, t, "-n", away, "delete", "release", "blocked", "--wait=false")
		r := until(ctx, t, away, "blocked", func(r *corev1alpha1.Release) bool {
			return has(r.Status.Conditions, "Ready", "False", corev1alpha1.ReasonBlockedOnCluster)
		})
		contains(t, message(r.Status.Conditions, "Ready"), `Cluster "edge-2" is not reachable since`, "blockOnClusterUnreachable to false", "keepWorkloads to true")
	})
	if err := world.hub.ApplyObjects(ctx, install.Release(away, "anew", edge2, apps, "anew")); err != nil {
		t.Fatal(err)
	}
	if err := world.far.Run(ctx); err != nil {
		t.Fatal(err)
	}
	t.Run("when the agent is back, what was deleted is removed", func(t *testing.T) {
		removed(ctx, t, world.far, "plain")
		removed(ctx, t, world.far, "blocked")
		gone(ctx, t, install.Releases, away, "blocked")
	})
	t.Run("a Release made anew under the name has adopted the objects", func(t *testing.T) {
		r := until(ctx, t, away, "anew", running)
		u := object(ctx, t, world.far, "anew")
		if string(u.GetUID()) != before["anew"] {
			t.Errorf("the workload is another: %s, was %s", u.GetUID(), before["anew"])
		}
		if owner := u.GetAnnotations()[corev1alpha1.AnnotationOwner]; !strings.HasSuffix(owner, "/"+string(r.UID)) {
			t.Errorf("it belongs to %s, not to Release %s", owner, r.UID)
		}
	})
}

// grant gives a user rights in namespace team.
func grant(ctx context.Context, t *testing.T, user, role string) {
	t.Helper()
	kubectl(ctx, t, "-n", team, "create", "rolebinding", user, "--user="+user, role)
}

func massDelete(ctx context.Context, t *testing.T) {
	names := make([]string, many)
	for i := range names {
		names[i] = massName(i)
	}
	ready(ctx, t, team, edge1, names)
	before := objects(ctx, t, world.near)
	kubectl(ctx, t, "-n", team, "create", "role", "half-confirm", "--verb=create", "--resource=releases.core.convoy.kumodo.io/confirm")
	grant(ctx, t, "editor", "--clusterrole=edit")
	grant(ctx, t, "half", "--role=half-confirm")
	grant(ctx, t, "lead", "--clusterrole=admin")

	text := refused(ctx, t, "-n", team, "delete", "releases", "--all", "--wait=false")
	contains(t, text, "Forbidden", "its deletion is held: 20 of at most 20 Releases of namespace \"team\" were deleted since", "there were 60 then",
		"its workloads go on running", "kubectl convoy confirm -n team mass-")
	if count := strings.Count(text, "its deletion is held"); count != many-20 {
		t.Errorf("kubectl said %d times that a deletion is held, want %d", count, many-20)
	}
	var held []*corev1alpha1.Release
	for _, name := range names {
		switch r := get(ctx, t, team, name); {
		case r == nil || r.DeletionTimestamp != nil:
			removed(ctx, t, world.near, name)
		case r.Status.HeldDeletion == nil:
			t.Errorf("%s is neither deleted nor held", name)
		default:
			held = append(held, r)
		}
	}
	if len(held) != many-20 {
		t.Fatalf("%d are held, want %d", len(held), many-20)
	}
	for name, uid := range objects(ctx, t, world.near) {
		if before[name] != "" && before[name] != uid {
			t.Errorf("the workload of %s is another", name)
		}
	}
	first := held[0]
	if h := first.Status.HeldDeletion; h.Reason != corev1alpha1.HeldByBudget || h.Sequence != first.Status.Sequence {
		t.Errorf("recorded %+v", h)
	}
	t.Run("a user without the verb cannot confirm", func(t *testing.T) {
		if err := confirm(ctx, as(t, "editor"), install.Releases, team, first.Name, first.Status.HeldDeletion); !apierrors.IsForbidden(err) {
			t.Errorf("an editor: %v", err)
		}
		err := confirm(ctx, as(t, "half"), install.Releases, team, first.Name, first.Status.HeldDeletion)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb confirm") {
			t.Errorf("one who may only call the subresource: %v", err)
		}
	})
	t.Run("an admin of the namespace can, and then they go", func(t *testing.T) {
		for _, r := range held[:2] {
			if err := confirm(ctx, as(t, "lead"), install.Releases, team, r.Name, r.Status.HeldDeletion); err != nil {
				t.Fatal(err)
			}
			kubectl(ctx, t, "-n", team, "delete", "release", r.Name, "--timeout=180s")
			removed(ctx, t, world.near, r.Name)
		}
		contains(t, refused(ctx, t, "-n", team, "delete", "release", held[2].Name), "its deletion is held")
	})
}

// revoke measures from the answer to the request until the status says so.
func revoke(ctx context.Context, t *testing.T) {
	clusters := as(t, "lead").Resource(install.Clusters).Namespace(team)
	watch, err := world.hub.Plane.Dynamic().Resource(install.Clusters).Namespace(team).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + edge1})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	began := time.Now()
	_, err = clusters.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": corev1alpha1.SchemeGroupVersion.String(), "kind": "RevokeRequest", "metadata": map[string]any{"name": edge1},
	}}, metav1.CreateOptions{}, "revoke")
	if err != nil {
		t.Fatal(err)
	}
	for revoked := false; !revoked; {
		select {
		case event := <-watch.ResultChan():
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("the watch ended: %v", event)
			}
			c, err := harness.As[corev1alpha1.Cluster](u)
			if err != nil {
				t.Fatal(err)
			}
			revoked = has(c.Status.Conditions, "Ready", "False", corev1alpha1.ReasonRevoked) && !c.Status.Reachable
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
	t.Logf("status said Revoked after %s", time.Since(began).Round(time.Millisecond))
	noSession(ctx, t, world.near)
	t.Logf("the session had ended after %s", time.Since(began).Round(time.Millisecond))
	rejoin(ctx, t, world.near, team, edge1)
	c := untilCluster(ctx, t, team, edge1, func(c *corev1alpha1.Cluster) bool { return c.Status.Reachable })
	if c.Status.Agent == nil || c.Status.Agent.RevokedAt != nil {
		t.Errorf("after the new join the agent is %+v", c.Status.Agent)
	}
}

// left lists the Releases of a namespace.
func left(ctx context.Context, t *testing.T, namespace string) []string {
	t.Helper()
	return strings.Fields(kubectl(ctx, t, "-n", namespace, "get", "releases", "-o", "jsonpath={.items[*].metadata.name}"))
}

func recreate(ctx context.Context, t *testing.T) {
	before := objects(ctx, t, world.near)
	names := left(ctx, t, team)
	kubectl(ctx, t, "-n", team, "delete", "cluster", edge1, "--timeout=180s")
	if now := left(ctx, t, team); len(now) != len(names) {
		t.Fatalf("%d Releases are left of %d", len(now), len(names))
	}
	until(ctx, t, team, names[0], func(r *corev1alpha1.Release) bool {
		return has(r.Status.Conditions, "Ready", "Unknown", corev1alpha1.ReasonClusterNotReady)
	})
	rejoin(ctx, t, world.near, team, edge1)
	uid := kubectl(ctx, t, "-n", team, "get", "cluster", edge1, "-o", "jsonpath={.metadata.uid}")
	for _, name := range names {
		until(ctx, t, team, name, func(r *corev1alpha1.Release) bool {
			return running(r) && r.Status.Order != nil && strings.Contains(r.Status.Order.Payload, uid)
		})
	}
	now := objects(ctx, t, world.near)
	for name, uid := range before {
		if now[name] != uid {
			t.Errorf("the workload of %s is another: %s, was %s", name, now[name], uid)
		}
	}
}

func pruneReleases(ctx context.Context, t *testing.T) {
	ready(ctx, t, team, edge1, []string{"kept"}, func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
	names := left(ctx, t, team)
	kubectl(ctx, t, "-n", team, "patch", "cluster", edge1, "--type=merge", "-p", `{"spec":{"deletionPolicy":{"pruneReleases":true}}}`)
	contains(t, refused(ctx, t, "-n", team, "delete", "cluster", edge1), "its deletion is held",
		fmt.Sprintf("it would delete %d; the workloads of its %d Releases go on running", len(names)-1, len(names)-1), "kubectl convoy confirm -n team cluster/edge-1")
	said, err := world.hub.Plugin(ctx, "-n", team, "confirm", "cluster/"+edge1)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, said, "cluster/edge-1 may be deleted until")
	kubectl(ctx, t, "-n", team, "delete", "cluster", edge1, "--timeout=120s")
	if now := left(ctx, t, team); len(now) != 0 {
		t.Errorf("the Cluster is gone before its Releases: %v", now)
	}
	for _, name := range names {
		if name != "kept" {
			removed(ctx, t, world.near, name)
		}
	}
	if u := object(ctx, t, world.near, "kept"); u.GetAnnotations()[corev1alpha1.AnnotationOwner] != "" {
		t.Errorf("what is kept is still marked: %v", u.GetAnnotations())
	}
	noSession(ctx, t, world.near)
}

// namespace deletes a namespace of the host with a Cluster and a Release in it.
func namespace(ctx context.Context, t *testing.T, name string, annotations ...string) {
	t.Helper()
	if err := open(ctx, name, annotations...); err != nil {
		t.Fatal(err)
	}
	rejoin(ctx, t, world.near, name, edge1)
	ready(ctx, t, name, edge1, []string{name})
	kubectl(ctx, t, "delete", "namespace", name, "--timeout=120s")
}

func orphans(ctx context.Context, t *testing.T) {
	namespace(ctx, t, "going")
	if u := object(ctx, t, world.near, "going"); u.GetAnnotations()[corev1alpha1.AnnotationOwner] != "" {
		t.Errorf("what is left is still marked: %v", u.GetAnnotations())
	}
}

func uninstalls(ctx context.Context, t *testing.T) {
	namespace(ctx, t, "leaving", corev1alpha1.AnnotationUninstallOnDelete+"=true")
	removed(ctx, t, world.near, "leaving")
}
