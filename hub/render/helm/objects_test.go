// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"errors"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/helm"
	"kumodo.io/convoy/pkg/manifest"
)

func TestHooksAreMappedOntoPhasesPoliciesAndWaves(t *testing.T) {
	tests := []struct {
		name, annotations  string
		hook, policy, wave string
		left               bool // out
	}{
		{"no hook", `{a: b}`, "", "", "", false},
		{"before an installation", `{helm.sh/hook: pre-install}`, "PreInstall", "BeforeHookCreation", "", false},
		{"before an upgrade", `{helm.sh/hook: pre-upgrade}`, "PreUpgrade", "BeforeHookCreation", "", false},
		{"before both is before each sync", `{helm.sh/hook: "pre-install, PRE-UPGRADE"}`, "PreSync", "BeforeHookCreation", "", false},
		{"events of several phases", `{helm.sh/hook: "post-install,pre-delete,post-upgrade"}`, "PostSync,PreDelete", "BeforeHookCreation", "", false},
		{"an event and a test", `{helm.sh/hook: "test,post-upgrade"}`, "PostUpgrade", "BeforeHookCreation", "", false},
		{"a test", `{helm.sh/hook: test}`, "", "", "", true},
		{"a rollback, which is a sync here", `{helm.sh/hook: "pre-rollback,pre-upgrade"}`, "Rollback,PreUpgrade", "BeforeHookCreation", "", false},
		{"convoy's own annotation before Helm's", `{helm.sh/hook: pre-install, convoy.kumodo.io/hook: PostSync}`, "PostSync", "", "", false},
		{"a test of Helm 2", `{helm.sh/hook: test-success}`, "", "", "", true},
		{"a word that nobody knows", `{helm.sh/hook: "pre-install,crd-install"}`, "", "", "", true},
		{"a weight", `{helm.sh/hook: pre-install, helm.sh/hook-weight: "-7"}`, "PreInstall", "BeforeHookCreation", "-7", false},
		{"a weight that is no number", `{helm.sh/hook: pre-install, helm.sh/hook-weight: heavy}`, "PreInstall", "BeforeHookCreation", "", false},
		{"a wave of its own before its weight", `{helm.sh/hook: pre-install, helm.sh/hook-weight: "5", convoy.kumodo.io/sync-wave: "3"}`, "PreInstall", "BeforeHookCreation", "3", false},
		{"several policies", `{helm.sh/hook: pre-install, helm.sh/hook-delete-policy: "hook-succeeded, hook-failed"}`, "PreInstall", "HookSucceeded,HookFailed", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: " + test.annotations + "}\n"
			object, there := render(t, chart(template, "")).objects(t)["ConfigMap x"]
			if there == test.left {
				t.Fatalf("there %t", there)
			}
			if test.left {
				return
			}
			got := annotationsOf(object)
			if got["convoy.kumodo.io/hook"] != test.hook || got["convoy.kumodo.io/hook-delete-policy"] != test.policy || got["convoy.kumodo.io/sync-wave"] != test.wave {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAHookThatCannotBeUnderstoodIsNamed(t *testing.T) {
	for name, annotations := range map[string]string{
		"a policy that nobody knows":  `{helm.sh/hook: pre-install, helm.sh/hook-delete-policy: sometimes}`,
		"a weight that is out of any": `{helm.sh/hook: pre-install, helm.sh/hook-weight: "99999999999"}`,
	} {
		t.Run(name, func(t *testing.T) {
			template := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  annotations: " + annotations + "\n"
			_, _, err := render(t, chart(template, "")).Objects()
			var faults manifest.Errors
			if !errors.Is(err, helm.ErrHook) || !errors.As(err, &faults) || !strings.Contains(err.Error(), "app/templates/a.yaml, document 1, line 1: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDefinitionsOfSeveralChartsAreThereOnceAndCanBeLeftOut(t *testing.T) {
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.test}\nspec: {group: example.test}\n"
	tree := chart("", "")
	tree["app/crds/x.yaml"], tree["app/crds/deep/y.txt"] = definition, "no manifest"
	tree["app/charts/sub/Chart.yaml"] = "{apiVersion: v2, name: sub, version: 1.0.0}"
	tree["app/charts/sub/crds/x.yaml"] = definition
	crds, _, err := render(t, tree).Objects()
	if err != nil || len(crds) != 1 {
		t.Errorf("%d definitions, %v", len(crds), err)
	}
	crds, _, err = render(t, tree, func(o *helm.Options) { o.SkipCRDs = true }).Objects()
	if err != nil || len(crds) != 0 {
		t.Errorf("left out: %d definitions, %v", len(crds), err)
	}
}
