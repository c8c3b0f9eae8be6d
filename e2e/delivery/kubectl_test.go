// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestNamespacesOfTheHostCanBeDeleted is the first promise of an aggregated API:
// the host's namespace controller gets an answer it can read.
func TestNamespacesOfTheHostCanBeDeleted(t *testing.T) {
	ctx := deadline(t)
	hub := shared.hub.Plane
	if _, err := hub.Kubectl(ctx, "create", "namespace", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Kubectl(ctx, "delete", "namespace", "x", "--timeout=180s"); err != nil {
		t.Fatal(err)
	}
}

// kinds that users write, each as they would write it.
var written = []struct {
	gvr      schema.GroupVersionResource
	manifest string
	// field of spec to look for among the managed ones.
	field string
}{
	{install.Clusters, `{apiVersion: core.convoy.kumodo.io/v1alpha1, kind: Cluster, metadata: {name: written}, spec: {metadata: {region: north}}}`, "f:metadata"},
	{install.Releases, `{apiVersion: core.convoy.kumodo.io/v1alpha1, kind: Release, metadata: {name: written}, spec: {clusterRef: {name: nowhere}, source: {kind: GitRepository, name: written}}}`, "f:clusterRef"},
	{install.GitRepositories, `{apiVersion: source.convoy.kumodo.io/v1alpha1, kind: GitRepository, metadata: {name: written}, spec: {url: "https://git.example.test/app.git"}}`, "f:url"},
}

func TestEveryKindThatUsersWriteKeepsManagedFields(t *testing.T) {
	ctx := deadline(t)
	hub := shared.hub.Plane
	const ns = "written"
	if _, err := hub.Kubectl(ctx, "create", "namespace", ns); err != nil {
		t.Fatal(err)
	}
	for _, kind := range written {
		t.Run(kind.gvr.Resource, func(t *testing.T) {
			apply := []string{"-n", ns, "apply", "--server-side", "--field-manager=alice", "-f", "-"}
			if _, err := hub.KubectlInput(ctx, kind.manifest, apply...); err != nil {
				t.Fatal(err)
			}
			if _, err := hub.Kubectl(ctx, "-n", ns, "label", kind.gvr.Resource+"."+kind.gvr.Group, "written", "seen=yes"); err != nil {
				t.Fatal(err)
			}
			u, err := hub.Dynamic().Resource(kind.gvr).Namespace(ns).Get(ctx, "written", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			fields := ""
			managers := []string{}
			for _, entry := range u.GetManagedFields() {
				managers = append(managers, entry.Manager+"/"+string(entry.Operation))
				if entry.Manager == "alice" && entry.Operation == metav1.ManagedFieldsOperationApply {
					fields = entry.FieldsV1.GetRawString()
				}
			}
			if !strings.Contains(fields, kind.field) {
				t.Errorf("alice's fields are %q, managers %v", fields, managers)
			}
			if len(managers) < 2 {
				t.Errorf("the label has no manager: %v", managers)
			}
			if _, err := hub.KubectlInput(ctx, kind.manifest, "-n", ns, "diff", "--server-side", "--field-manager=alice", "-f", "-"); err != nil {
				t.Errorf("an unchanged object differs: %v", err)
			}
		})
	}
}

func TestKubectlExplainsEditsAndWaits(t *testing.T) {
	ctx := deadline(t)
	hub := shared.hub.Plane
	for field, want := range map[string]string{
		"releases.spec.syncPolicy.interval": "10s",
		"clusters.spec.metadata":            "cluster.name",
		"gitrepositories.spec.ref":          "branch",
		"releaseinventories.entries":        "apply order",
	} {
		out, err := hub.Kubectl(ctx, "explain", field)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("explain %s: %v: %q does not say %q", field, err, out, want)
		}
	}

	a := newApp(ctx, t, "kubectl-edit", map[string]string{"app/cm.yaml": configMap("kubectl-edit", "settings", "a", "1")})
	a.release(ctx, t, a.name, "app")
	for _, condition := range []string{"Rendered", "Applied", "InSync", "Healthy", "Ready"} {
		if _, err := hub.Kubectl(ctx, "-n", team, "wait", "--for=condition="+condition, "release/"+a.name, "--timeout=180s"); err != nil {
			t.Fatal(err)
		}
	}
	edit := hub.KubectlCommand(ctx, "-n", team, "edit", "release", a.name)
	edit.Env = append(edit.Environ(), "KUBE_EDITOR=sed -i 's/interval: 5m0s/interval: 7m0s/'")
	if out, err := harness.RunCommand(edit); err != nil || !strings.Contains(out, "edited") {
		t.Errorf("edit: %v: %s", err, out)
	}
	if out, err := hub.Kubectl(ctx, "-n", team, "get", "release", a.name, "-o", "jsonpath={.spec.syncPolicy.interval}"); err != nil || out != "7m0s" {
		t.Errorf("interval after the edit: %q, %v", out, err)
	}
	wide, err := hub.Kubectl(ctx, "-n", team, "get", "clusters,releases", "-o", "wide")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{edge, "Connected", a.name, "sha1:"} {
		if !strings.Contains(wide, want) {
			t.Errorf("the wide tables do not show %q:\n%s", want, wide)
		}
	}
	if _, err := hub.Kubectl(ctx, "-n", team, "get", "convoy"); err != nil {
		t.Errorf("the category: %v", err)
	}
}

func TestBadFieldsAreRefusedByTheirPath(t *testing.T) {
	ctx := deadline(t)
	for name, c := range map[string]struct{ manifest, want string }{
		"unknown field":    {`{apiVersion: core.convoy.kumodo.io/v1alpha1, kind: Release, metadata: {name: bad}, spec: {clusterRef: {name: a}, source: {kind: GitRepository, name: b}, suspendd: true}}`, "spec.suspendd"},
		"path that leaves": {`{apiVersion: core.convoy.kumodo.io/v1alpha1, kind: Release, metadata: {name: bad}, spec: {clusterRef: {name: a}, source: {kind: GitRepository, name: b}, content: {path: ../up}}}`, "spec.content.path"},
		"no cluster":       {`{apiVersion: core.convoy.kumodo.io/v1alpha1, kind: Release, metadata: {name: bad}, spec: {source: {kind: GitRepository, name: b}}}`, "spec.clusterRef.name"},
		"two refs":         {`{apiVersion: source.convoy.kumodo.io/v1alpha1, kind: GitRepository, metadata: {name: bad}, spec: {url: "https://a.example.test/b", ref: {branch: a, tag: b}}}`, "spec.ref"},
		"password in url":  {`{apiVersion: source.convoy.kumodo.io/v1alpha1, kind: GitRepository, metadata: {name: bad}, spec: {url: "https://u:secret@a.example.test/b"}}`, "spec.url"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := shared.hub.Plane.KubectlInput(ctx, c.manifest, "-n", team, "apply", "--server-side", "-f", "-")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error that names %s, have %v", c.want, err)
			}
			if err != nil && strings.Contains(err.Error(), "u:secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// TestOnlyWhoMayReadASecretMayReferToIt: a GitRepository sends the Secret to a
// host of its author's choice.
func TestOnlyWhoMayReadASecretMayReferToIt(t *testing.T) {
	ctx := deadline(t)
	hub := shared.hub.Plane
	const ns = "deputy"
	for _, args := range [][]string{
		{"create", "namespace", ns},
		{"-n", ns, "create", "secret", "generic", "crown", "--from-literal=token=jewels"},
		{"-n", ns, "create", "role", "sources", "--verb=create,get,patch,update", "--resource=gitrepositories.source.convoy.kumodo.io"},
		{"-n", ns, "create", "rolebinding", "sources", "--role=sources", "--user=mallory"},
	} {
		if _, err := hub.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	manifest := `{apiVersion: source.convoy.kumodo.io/v1alpha1, kind: GitRepository, metadata: {name: lure}, spec: {url: "https://mallory.example.test/x", secretRef: {name: crown}}}`
	if err := applyAs(ctx, t, "mallory", ns, manifest); err == nil || !strings.Contains(err.Error(), "crown") {
		t.Fatalf("mallory's reference was taken: %v", err)
	}
	if _, err := hub.Kubectl(ctx, "-n", ns, "create", "role", "reader", "--verb=get", "--resource=secrets"); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Kubectl(ctx, "-n", ns, "create", "rolebinding", "reader", "--role=reader", "--user=mallory"); err != nil {
		t.Fatal(err)
	}
	for {
		err := applyAs(ctx, t, "mallory", ns, manifest)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("who may read the Secret may not refer to it: %v", err)
		}
	}
}

func applyAs(ctx context.Context, t *testing.T, user, ns, manifest string) error {
	t.Helper()
	kubeconfig, err := shared.hub.Plane.UserKubeconfig(user)
	if err != nil {
		return err
	}
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return err
	}
	_, err = shared.hub.Plane.Kubectl(ctx, "--kubeconfig", kubeconfig, "-n", ns, "create", "-f", file)
	if err != nil {
		return fmt.Errorf("as %s: %w", user, err)
	}
	return nil
}
