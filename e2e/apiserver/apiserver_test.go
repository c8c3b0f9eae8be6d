// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
)

const manifests = `
apiVersion: core.convoy.kumodo.io/v1alpha1
kind: Cluster
metadata: {name: edge-1}
spec:
  metadata: {region: eu}
---
apiVersion: source.convoy.kumodo.io/v1alpha1
kind: GitRepository
metadata: {name: app}
spec:
  url: https://git.example/team/app.git
---
apiVersion: core.convoy.kumodo.io/v1alpha1
kind: Release
metadata: {name: web}
spec:
  clusterRef: {name: edge-1}
  source: {kind: GitRepository, name: app}
  content: {path: deploy}
`

func TestBehindAHost(t *testing.T) {
	h := startHost(t)
	// One install for all; each test has a namespace of its own.
	t.Run("an empty namespace can be made and deleted", h.testEmptyNamespace)
	t.Run("a namespace with 1,000 Releases can be deleted", h.testFullNamespace)
	t.Run("explain shows what the fields mean", h.testExplain)
	t.Run("apply, diff, edit, replace, get and wait work", h.testKubectl)
	t.Run("server-side apply keeps owners and reports conflicts", h.testServerSideApply)
	t.Run("nothing can be made in a namespace that is not there or on its way out", h.testNamespaceLifecycle)
	t.Run("the host's policies hold for our kinds", h.testPolicy)
	t.Run("the host's RBAC decides about each verb and subresource", h.testRoles)
	t.Run("nobody can have the hub use a Secret that he may not get", h.testSecretReference)
	t.Run("the hub asked the host only what its manifests allow", h.testAudit)
}

// kubectl runs it and gives what it prints.
func (h *host) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.Kubectl(h.ctx, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// refused runs kubectl, which must fail, and gives what it says.
func (h *host) refused(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.Kubectl(h.ctx, args...)
	if err == nil {
		t.Fatalf("kubectl %s succeeded:\n%s", strings.Join(args, " "), out)
	}
	var command *harness.CommandError
	if !errors.As(err, &command) {
		t.Fatal(err)
	}
	return command.Error()
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func (h *host) namespace(t *testing.T, name string) {
	t.Helper()
	h.kubectl(t, "create", "namespace", name)
}

func (h *host) testEmptyNamespace(t *testing.T) {
	h.namespace(t, "x")
	began := time.Now()
	h.kubectl(t, "delete", "namespace", "x", "--timeout=180s")
	t.Logf("gone after %s", time.Since(began))
}

func (h *host) testFullNamespace(t *testing.T) {
	h.namespace(t, "full")
	const count = 1000
	g, ctx := errgroup.WithContext(h.ctx)
	g.SetLimit(16)
	for i := range count {
		g.Go(func() error {
			r := &corev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: fmt.Sprint("release-", i)}}
			r.Spec.ClusterRef.Name = "edge-1"
			r.Spec.Source = corev1alpha1.SourceReference{Kind: corev1alpha1.SourceKindGitRepository, Name: "app"}
			if _, err := h.server.Storage().Releases.Create(ctx, r); err != nil {
				return err
			}
			name := types.NamespacedName{Namespace: "full", Name: r.Name}
			_, err := h.server.Storage().Inventories.Put(ctx, name, func() *corev1alpha1.ReleaseInventory { return &corev1alpha1.ReleaseInventory{} }, func(*corev1alpha1.ReleaseInventory) error { return nil })
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	h.kubectl(t, "delete", "namespace", "full", "--timeout=180s")
	t.Logf("gone after %s", time.Since(began))
}

func (h *host) testExplain(t *testing.T) {
	contains(t, h.kubectl(t, "explain", "releases.core.convoy.kumodo.io.spec"), "GROUP:      core.convoy.kumodo.io", "clusterRef\t<ClusterReference> -required-", "names the target Cluster. Immutable.")
	contains(t, h.kubectl(t, "explain", "cvc.spec.connectionMode"), "an agent in the cluster dials out")
	contains(t, h.kubectl(t, "explain", "gitrepositories.source.convoy.kumodo.io.spec", "--recursive"), "secretRef", "commit\t<string>")
	contains(t, h.kubectl(t, "explain", "relinv"), "lists the objects that were applied")
	contains(t, h.kubectl(t, "api-resources", "--categories=convoy"), "clusters", "releases", "gitrepositories")
}

func (h *host) testKubectl(t *testing.T) {
	h.namespace(t, "work")
	path := h.file(t, manifests)
	contains(t, h.kubectl(t, "-n", "work", "apply", "-f", path), "release.core.convoy.kumodo.io/web created")
	contains(t, h.kubectl(t, "-n", "work", "apply", "-f", path), "release.core.convoy.kumodo.io/web unchanged", "cluster.core.convoy.kumodo.io/edge-1 unchanged", "gitrepository.source.convoy.kumodo.io/app unchanged")

	changed := h.file(t, strings.ReplaceAll(manifests, "path: deploy", "path: other"))
	contains(t, h.refused(t, "-n", "work", "diff", "-f", changed), "exit status 1")
	contains(t, h.kubectl(t, "-n", "work", "apply", "-f", changed), "release.core.convoy.kumodo.io/web configured")
	contains(t, h.kubectl(t, "-n", "work", "get", "rel", "web", "-o", "jsonpath={.spec.content.path} {.metadata.generation}"), "other 2")

	edit := h.KubectlCommand(h.ctx, "-n", "work", "edit", "rel", "web")
	edit.Env = append(edit.Environ(), "KUBE_EDITOR=sed -i s/other/edited/")
	if out, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("edit: %v\n%s", err, out)
	}
	contains(t, h.kubectl(t, "-n", "work", "get", "rel", "web", "-o", "jsonpath={.spec.content.path}"), "edited")

	h.kubectl(t, "-n", "work", "patch", "rel", "web", "-p", `{"spec":{"content":{"path":"patched"}}}`)
	contains(t, h.kubectl(t, "-n", "work", "get", "convoy"), "edge-1", "app", "web")
	contains(t, h.kubectl(t, "-n", "work", "get", "releases.core.convoy.kumodo.io", "-o", "wide"), "NAME", "CLUSTER", "READY", "STATUS", "REVISION", "AGE", "MESSAGE")
	contains(t, h.kubectl(t, "get", "rel", "-A", "--field-selector=spec.clusterRef.name=edge-1", "-o", "name"), "web")
	if out := h.kubectl(t, "get", "rel", "-A", "--field-selector=spec.clusterRef.name=none", "-o", "name"); out != "" {
		t.Errorf("selected %q", out)
	}
	contains(t, h.refused(t, "-n", "work", "patch", "rel", "web", "--type=merge", "-p", `{"spec":{"clusterRef":{"name":"other"}}}`), "spec.clusterRef.name", "immutable")
	contains(t, h.refused(t, "-n", "work", "apply", "-f", h.file(t, strings.ReplaceAll(manifests, "content: {path: deploy}", "pin: {}"))), "unknown field", "spec.pin")

	waited := make(chan error, 1)
	go func() {
		_, err := h.Kubectl(h.ctx, "-n", "work", "wait", "--for=condition=Ready", "rel/web", "--timeout=180s")
		waited <- err
	}()
	_, err := h.server.Storage().Releases.UpdateStatus(h.ctx, types.NamespacedName{Namespace: "work", Name: "web"}, "", func(r *corev1alpha1.Release) error {
		r.Status.Conditions = []metav1.Condition{{Type: corev1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: corev1alpha1.ReasonReady, LastTransitionTime: metav1.Now()}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("wait: %v", err)
	}
	h.kubectl(t, "delete", "namespace", "work", "--timeout=180s")
}

func (h *host) testServerSideApply(t *testing.T) {
	h.namespace(t, "owned")
	path := h.file(t, manifests)
	contains(t, h.kubectl(t, "-n", "owned", "apply", "--server-side", "--field-manager=alice", "-f", path), "release.core.convoy.kumodo.io/web serverside-applied")
	for _, object := range []string{"rel/web", "cvc/edge-1", "cvgit/app"} {
		managed := h.kubectl(t, "-n", "owned", "get", object, "-o", "jsonpath={.metadata.managedFields}")
		contains(t, managed, `"manager":"alice"`, `"f:spec"`)
	}
	other := h.file(t, strings.NewReplacer("path: deploy", "path: other", "region: eu", "region: us", "team/app.git", "team/other.git").Replace(manifests))
	contains(t, h.refused(t, "-n", "owned", "apply", "--server-side", "--field-manager=bob", "-f", other), `conflict with "alice"`, ".spec.content.path", ".spec.metadata.region", ".spec.url")
	h.kubectl(t, "-n", "owned", "apply", "--server-side", "--force-conflicts", "--field-manager=bob", "-f", other)
}

func (h *host) testNamespaceLifecycle(t *testing.T) {
	contains(t, h.refused(t, "-n", "never-made", "apply", "-f", h.file(t, manifests)), `namespaces "never-made" not found`)
}

func (h *host) testPolicy(t *testing.T) {
	h.namespace(t, "governed")
	h.kubectl(t, "apply", "-f", h.file(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-force}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [core.convoy.kumodo.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [releases]}
  validations:
    - expression: "object.spec.syncPolicy.conflicts != 'Force'"
      message: nobody forces here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-force}
spec:
  policyName: no-force
  validationActions: [Deny]
`))
	release := h.file(t, `
apiVersion: core.convoy.kumodo.io/v1alpha1
kind: Release
metadata: {name: forced}
spec:
  clusterRef: {name: edge-1}
  source: {kind: GitRepository, name: app}
  syncPolicy: {conflicts: Force}
`)
	// The policy reaches the hub by a watch, soon.
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := h.Kubectl(ctx, "-n", "governed", "apply", "--dry-run=server", "-f", release)
		if err != nil && strings.Contains(err.Error(), "nobody forces here") {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the policy does not hold: %v", err)
		case <-tick.C:
		}
	}
	h.kubectl(t, "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-force")
}

func (h *host) testRoles(t *testing.T) {
	h.namespace(t, "roles")
	h.kubectl(t, "-n", "roles", "apply", "-f", h.file(t, manifests))
	for _, role := range []string{"view", "edit", "admin"} {
		h.kubectl(t, "-n", "roles", "create", "rolebinding", role, "--clusterrole="+role, "--user="+role+"er")
	}
	for _, c := range []struct {
		user, verb, resource string
		want                 bool
	}{
		{"viewer", "get", "releases.core.convoy.kumodo.io", true},
		{"viewer", "get", "clusters.core.convoy.kumodo.io", true},
		{"viewer", "create", "releases.core.convoy.kumodo.io", false},
		{"viewer", "create", "releases.core.convoy.kumodo.io/sync", false},
		{"editer", "create", "releases.core.convoy.kumodo.io", true},
		{"editer", "create", "releases.core.convoy.kumodo.io/sync", true},
		{"editer", "create", "clusters.core.convoy.kumodo.io", false},
		{"editer", "create", "clusters.core.convoy.kumodo.io/join", false},
		{"adminer", "create", "clusters.core.convoy.kumodo.io/join", true},
		{"adminer", "update", "releases.core.convoy.kumodo.io/status", false},
	} {
		resource, sub, _ := strings.Cut(c.resource, "/")
		args := []string{"-n", "roles", "--as=" + c.user, "auth", "can-i", c.verb, resource}
		if sub != "" {
			args = append(args, "--subresource="+sub)
		}
		out, err := h.Kubectl(h.ctx, args...)
		if got := err == nil && strings.HasPrefix(out, "yes"); got != c.want {
			t.Errorf("%s may %s %s: %t, want %t", c.user, c.verb, c.resource, got, c.want)
		}
	}
	contains(t, h.refused(t, "-n", "roles", "--as=viewer", "delete", "rel", "web"), "forbidden")
	contains(t, h.kubectl(t, "-n", "roles", "--as=viewer", "get", "rel", "web"), "web")
}

func (h *host) testSecretReference(t *testing.T) {
	h.namespace(t, "guarded")
	h.kubectl(t, "-n", "guarded", "create", "rolebinding", "edit", "--clusterrole=convoy-edit", "--user=dev")
	repository := h.file(t, `
apiVersion: source.convoy.kumodo.io/v1alpha1
kind: GitRepository
metadata: {name: app}
spec:
  url: https://git.example/team/app.git
  secretRef: {name: credentials}
`)
	contains(t, h.refused(t, "-n", "guarded", "--as=dev", "create", "-f", repository), "Forbidden", "spec.secretRef.name", `cannot get Secret "credentials" in namespace "guarded"`)
	h.kubectl(t, "-n", "guarded", "create", "role", "reader", "--verb=get", "--resource=secrets", "--resource-name=credentials")
	h.kubectl(t, "-n", "guarded", "create", "rolebinding", "reader", "--role=reader", "--user=dev")
	// The host's answer is kept for ten seconds.
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := h.Kubectl(ctx, "-n", "guarded", "--as=dev", "create", "-f", repository)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still refused: %v", err)
		case <-tick.C:
		}
	}
	contains(t, h.kubectl(t, "-n", "guarded", "get", "cvgit", "app", "-o", "jsonpath={.status.checkedSecrets}"), "credentials")
}

func (h *host) testAudit(t *testing.T) {
	events, err := harness.AuditAll(h.AuditLog(), harness.AnyOf(harness.ByUser(hubAccount), harness.ByAgent("convoy")), harness.NotHarness())
	if err != nil {
		t.Fatal(err)
	}
	if len(events) == 0 {
		t.Fatal("the audit log has nothing of the hub: does this test look at the right user?")
	}
	verbs := map[string]int{}
	for _, e := range events {
		if e.Masters() {
			t.Errorf("a request as system:masters: %s %s", e.Verb, e.URI)
		}
		if e.Code == 403 {
			t.Errorf("forbidden: %s %s: %s", e.Verb, e.URI, e.Message)
		}
		verbs[e.Verb+" "+e.Object.Resource]++
	}
	t.Logf("requests of the hub to its host: %v", verbs)
}
