// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoMayWriteRuleSets(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	for _, role := range []string{"view", "edit", "admin"} {
		bind(ctx, t, "of-"+role, role)
	}
	for question, want := range map[string]string{
		"of-view get healthrulesets -n " + team:                         "yes",
		"of-view create healthrulesets -n " + team:                      "no",
		"of-view get globalhealthrulesets":                              "no",
		"of-edit create healthrulesets -n " + team:                      "yes",
		"of-edit delete healthrulesets -n " + team:                      "yes",
		"of-edit update healthrulesets --subresource=status -n " + team: "no",
		"of-edit create healthrulesets -n default":                      "no",
		"of-edit create globalhealthrulesets":                           "no",
		"of-admin create healthrulesets -n " + team:                     "yes",
		"of-admin create globalhealthrulesets":                          "no",
		"of-admin update globalhealthrulesets":                          "no",
		"of-admin delete globalhealthrulesets":                          "no",
	} {
		words := strings.Fields(question)
		words[2] += ".extensions.convoy.kumodo.io"
		// kubectl ends with 1 when the answer is no.
		out, err := shared.hub.Plane.Kubectl(ctx, append([]string{"auth", "can-i", "--as=" + words[0]}, words[1:]...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := lines[len(lines)-1]; got != want && (want != "no" || err == nil) {
			t.Errorf("%s? %q, want %s (%v)", question, got, want, err)
		}
	}
	// And the API server keeps to it.
	kubeconfig, err := shared.hub.Plane.UserKubeconfig("of-admin")
	if err != nil {
		t.Fatal(err)
	}
	own, global := set("HealthRuleSet", "by-an-admin", byPhase), set("GlobalHealthRuleSet", "by-an-admin", byPhase)
	if _, err := shared.hub.Plane.KubectlInput(ctx, own, "--kubeconfig", kubeconfig, "create", "-f", "-"); err != nil {
		t.Errorf("an admin of the namespace makes a HealthRuleSet: %v", err)
	}
	_, err = shared.hub.Plane.KubectlInput(ctx, global, "--kubeconfig", kubeconfig, "create", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "cannot create resource \"globalhealthrulesets\"") {
		t.Errorf("an admin of the namespace makes a GlobalHealthRuleSet: %v", err)
	}
}

func TestKubectlKnowsRuleSets(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	kubectl(ctx, t, set("HealthRuleSet", "shown", byPhase))
	for args, wants := range map[string][]string{
		"explain healthruleset.spec.rules.degraded":             {"KIND:", "HealthRuleSet", "a CEL expression of type bool"},
		"explain ghrs.spec.rules":                               {"GlobalHealthRuleSet", "kind", "healthy"},
		"-n " + team + " get hrs shown -o wide":                 {"RULES", "READY", "REASON", "KINDS", "Queue.mq.example.com"},
		"-n " + team + " get convoy --ignore-not-found":         {"healthruleset.extensions.convoy.kumodo.io/shown"},
		"api-resources --api-group=extensions.convoy.kumodo.io": {"hrs", "ghrs", "false", "true"},
	} {
		out, err := shared.hub.Plane.Kubectl(ctx, strings.Fields(args)...)
		if err != nil {
			t.Errorf("kubectl %s: %v", args, err)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %s does not show %q:\n%s", args, want, out)
			}
		}
	}
}

// bind gives a user a ClusterRole in the suite's namespace.
func bind(ctx context.Context, t *testing.T, name, role string) {
	t.Helper()
	_, err := shared.hub.Plane.Client().RbacV1().RoleBindings(team).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
