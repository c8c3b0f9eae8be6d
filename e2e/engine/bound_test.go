// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/tunnel"
)

// boundBench is an engine whose account has the role admin in one namespace, and
// no other right.
func boundBench(t *testing.T, user string) (*bench, string) {
	t.Helper()
	b := newIdleBench(t)
	ns := b.namespace(user)
	_, err := plane.Client().RbacV1().RoleBindings(ns).Create(b.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := plane.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.UserAgent = -1, "convoy-engine-test"
	b.config, b.namespaces = config, []string{ns, "bound-elsewhere"}
	b.start()
	return b, ns
}

func TestAnEngineBoundToNamespacesWorksInThemWithoutOneForbiddenRequest(t *testing.T) {
	t.Parallel()
	const user = "bound-works"
	b, ns := boundBench(t, user)
	b.apply("bound", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v"))
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	b.apply("bound", ns, configMap(ns, "one", "k", "v2"))
	if err := harness.WaitGone(b.ctx, plane.Dynamic(), configmaps, ns, "two"); err != nil {
		t.Error("what left the render is still there:", err)
	}
	b.restart()
	b.report("uid-bound", "in sync after a restart", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True })
	forbidden, err := harness.AuditAll(plane.AuditLog(), harness.ByUser(user), harness.WithCode(403))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range forbidden {
		t.Errorf("a forbidden request: %s %s", event.Verb, event.URI)
	}
}

func TestAnEngineBoundToNamespacesRefusesByNameWhatLiesOutside(t *testing.T) {
	t.Parallel()
	b, ns := boundBench(t, "bound-refuses")
	other := b.namespace("bound-other")
	o := b.accept(b.order("outside", ns, configMap(ns, "inside", "k", "v")+configMap(other, "outside", "k", "v")+`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bound-everything}
rules: []
`))
	r := b.settled(o)
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "DryRunFailed" {
		t.Fatalf("applied is %+v", r.Applied)
	}
	for _, words := range []string{"ConfigMap bound-other/outside", "ClusterRole", "bound-everything"} {
		if !strings.Contains(r.Applied.Message, words) {
			t.Errorf("the message does not say %q: %s", words, r.Applied.Message)
		}
	}
	var said strings.Builder
	for _, exception := range r.Exceptions {
		said.WriteString(exception.Message + "\n")
	}
	if !strings.Contains(said.String(), "may only write to namespaces bound-elsewhere, "+ns) || !strings.Contains(said.String(), "namespace "+other+" is none of those") {
		t.Errorf("the exceptions do not say where the agent may write: %s", said.String())
	}
	if _, err := plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "inside", metav1.GetOptions{}); err == nil {
		t.Error("an object of the refused render was applied")
	}
}

func TestAnEngineBoundToNamespacesActsAsTheirAccountsAndNoOthers(t *testing.T) {
	t.Parallel()
	const user = "bound-acts"
	b, ns := boundBench(t, user)
	b.serviceAccount(ns, "deployer", "edit")
	b.apply("acts", ns, configMap(ns, "one", "k", "v"), as(ns+":deployer"))
	forbidden, err := harness.AuditAll(plane.AuditLog(), harness.ByUser(user), harness.WithCode(403))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range forbidden {
		t.Errorf("a forbidden request: %s %s", event.Verb, event.URI)
	}
	r := b.settled(b.accept(b.order("acts", ns, configMap(ns, "one", "k", "v2"), as("kube-system:default"))))
	if r.Applied.Status != tunnel.False || !strings.Contains(r.Applied.Message, "cannot impersonate") || !strings.Contains(r.Applied.Message, user) {
		t.Errorf("applied is %+v", r.Applied)
	}
	if data(b.get(configmaps, ns, "one"), "k") != "v" {
		t.Error("applied as an account of another namespace")
	}
}
