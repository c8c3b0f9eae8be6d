// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func settings(namespace, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {greeting: hello}\n", name, namespace)
}

const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

func TestAnAgentOfASharedClusterDeploysIntoItsNamespacesAndNowhereElse(t *testing.T) {
	ctx := deadline(t)
	repo, err := world.git.Repository(ctx, repository)
	if err != nil {
		t.Fatal(err)
	}
	_, err = repo.Commit(ctx, "an application", map[string]string{
		"inside/all.yaml":  settings(mine, "web") + deployment,
		"outside/all.yaml": settings(mine, "sneaked") + "---\n" + settings(others, "taken"),
		"cluster/all.yaml": settings(mine, "sneaked") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: anew}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := world.hub.Source(ctx, world.git, team, repository, metav1.Duration{Duration: time.Hour}); err != nil {
		t.Fatal(err)
	}
	host, cluster := world.hub.Plane, world.edge.Plane
	err = world.hub.Create(ctx,
		install.Release(team, "inside", edge, repository, "inside"),
		install.Release(team, "outside", edge, repository, "outside"),
		install.Release(team, "cluster", edge, repository, "cluster"))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := harness.WaitFor(ctx, host.Dynamic(), install.Releases, team, "inside", harness.HasCondition("Ready", "True", "")); err != nil {
		t.Fatal(err)
	}
	// What it owns is watched and repaired there.
	patch := []byte(`{"data":{"greeting":"changed by hand"}}`)
	if _, err := cluster.Client().CoreV1().ConfigMaps(mine).Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = harness.WaitFor(ctx, cluster.Dynamic(), configMaps, mine, "web", func(u *unstructured.Unstructured) (bool, error) {
		object, err := harness.As[corev1.ConfigMap](u)
		return err == nil && object.Data["greeting"] == "hello", err
	})
	if err != nil {
		t.Error("not repaired:", err)
	}

	for release, wants := range map[string][]string{
		"outside": {"ConfigMap payments/taken", "namespace payments is none of those that this agent may write to: " + mine},
		"cluster": {"Namespace", "anew", "this agent may only write to namespaces " + mine},
	} {
		object, err := harness.WaitFor(ctx, host.Dynamic(), install.Releases, team, release, harness.HasCondition("Applied", "False", "DryRunFailed"))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(raw), want) {
				t.Errorf("Release %s does not say %q: %s", release, want, raw)
			}
		}
	}
	for _, at := range [][2]string{{mine, "sneaked"}, {others, "taken"}} {
		if _, err := cluster.Client().CoreV1().ConfigMaps(at[0]).Get(ctx, at[1], metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("ConfigMap %s/%s of a refused render: %v", at[0], at[1], err)
		}
	}
	forbidden, err := harness.AuditAll(cluster.AuditLog(), harness.ByServiceAccountsOf(install.AgentNamespace), harness.WithCode(403))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range forbidden {
		t.Errorf("the agent asked for what it may not have: %s %s", event.Verb, event.URI)
	}
}

func TestTheAccountOfASharedAgentReadsNoOtherNamespace(t *testing.T) {
	ctx := deadline(t)
	const account = "--as=system:serviceaccount:convoy-agent:convoy-agent"
	for question, want := range map[string]string{
		"list secrets -n " + mine:                            "yes",
		"create deployments.apps -n " + mine:                 "yes",
		"create resourcequotas -n " + mine:                   "no",
		"list secrets -n " + others:                          "no",
		"get secrets -n kube-system":                         "no",
		"list pods --all-namespaces":                         "no",
		"create namespaces":                                  "no",
		"list namespaces":                                    "no",
		"get namespaces/kube-system":                         "yes",
		"create clusterroles.rbac.authorization.k8s.io":      "no",
		"impersonate serviceaccounts -n " + others:           "no",
		"list secrets -n " + install.AgentNamespace:          "yes",
		"create pods -n " + install.AgentNamespace:           "no",
		"get customresourcedefinitions.apiextensions.k8s.io": "no",
	} {
		// kubectl ends with 1 when the answer is no.
		out, err := world.edge.Plane.Kubectl(ctx, append([]string{"auth", "can-i", account}, strings.Fields(question)...)...)
		if got := strings.TrimSpace(out); got != want && (want != "no" || err == nil) {
			t.Errorf("may it %s? %q, want %s", question, got, want)
		}
	}
}
