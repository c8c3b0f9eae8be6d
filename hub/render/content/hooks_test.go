// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/pkg/manifest"
)

func annotationsOf(object manifest.Object) map[string]string {
	texts := map[string]string{}
	metadata, _ := object.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		texts[key], _ = value.(string)
	}
	return texts
}

func TestHooksOfAChartKeepTheirWavesAndItsDefinitionsComeFirst(t *testing.T) {
	hook := func(name, phases, weight string) string {
		return configMap(name) + "  \n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook-" + name +
			"\n  annotations: {helm.sh/hook: '" + phases + "', helm.sh/hook-weight: '" + weight + "'}\n"
	}
	files := tree{
		"app/Chart.yaml":       "{apiVersion: v2, name: app, version: 0.1.0}",
		"app/templates/a.yaml": hook("a", "pre-install,pre-upgrade", "5"), "app/templates/b.yaml": hook("b", "pre-install", "-5"),
		"app/templates/c.yaml": hook("c", "post-install", "0"), "app/templates/d.yaml": hook("d", "post-delete", "0"), "app/templates/e.yaml": hook("e", "test", "0"),
		"app/templates/f.yaml": hook("f", "pre-rollback", "0"),
		"app/templates/w.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: early, annotations: {convoy.kumodo.io/sync-wave: '-2'}}\n",
		"app/crds/crd.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crd, annotations: {helm.sh/hook: crd-install}}\n",
	}
	result, err := content.Render(job(), files.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-5 hook-b", "-2 crd", "-2 early", "0 a", "0 b", "0 c", "0 d", "0 e", "0 f", "0 hook-c", "0 hook-d", "5 hook-a"}
	if diff := cmp.Diff(want, names(result.Set)); diff != "" {
		t.Errorf("HE-07 (-want +got):\n%s", diff)
	}
	if result.Hooks != 4 {
		t.Errorf("%d hooks", result.Hooks)
	}
	if diff := cmp.Diff([]string{"1 objects are left out: hooks of rollbacks, since a rollback is a sync like any other"}, result.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHooksOfAllOriginsComeIntoOneForm(t *testing.T) {
	tests := []struct {
		name, annotations  string
		hook, policy, wave string
		left               bool // out
		warning            string
	}{
		{"no hook", `{a: b}`, "", "", "", false, ""},
		{"convoy's own", `{convoy.kumodo.io/hook: "PreSync, SyncFailed"}`, "PreSync,SyncFailed", "BeforeHookCreation", "", false, ""},
		{"convoy's own with all there is", `{convoy.kumodo.io/hook: PostDelete, convoy.kumodo.io/hook-delete-policy: "HookFailed,HookSucceeded", convoy.kumodo.io/sync-wave: "-3", convoy.kumodo.io/hook-timeout: "90"}`, "PostDelete", "HookFailed,HookSucceeded", "-3", false, ""},
		{"of an installation and of an upgrade", `{convoy.kumodo.io/hook: "PreInstall,PostSync,PreUpgrade"}`, "PreSync,PostSync", "BeforeHookCreation", "", false, ""},
		{"of an installation", `{convoy.kumodo.io/hook: PostInstall}`, "PostInstall", "BeforeHookCreation", "", false, ""},
		{"Argo CD's", `{argocd.argoproj.io/hook: "PreSync,SyncFail", argocd.argoproj.io/hook-delete-policy: HookSucceeded, argocd.argoproj.io/sync-wave: "7"}`, "PreSync,SyncFailed", "HookSucceeded", "7", false, ""},
		{"Argo CD's of the sync itself are no hooks", `{argocd.argoproj.io/hook: Sync}`, "", "", "", false, ""},
		{"Argo CD's of the sync and after", `{argocd.argoproj.io/hook: "Sync,PostSync"}`, "PostSync", "BeforeHookCreation", "", false, ""},
		{"Argo CD's that are skipped", `{argocd.argoproj.io/hook: Skip}`, "", "", "", true, "1 objects are left out: hooks of Argo CD that say Skip"},
		{"Helm's in manifests", `{helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-weight: "2"}`, "PostSync", "BeforeHookCreation", "2", false, ""},
		{"Helm's tests in manifests", `{helm.sh/hook: test}`, "", "", "", true, "1 objects are left out: tests of Helm"},
		{"Helm's rollbacks in manifests", `{helm.sh/hook: post-rollback}`, "", "", "", true, "1 objects are left out: hooks of rollbacks, since a rollback is a sync like any other"},
		{"a word that Helm does not know", `{helm.sh/hook: crd-install}`, "", "", "", false, "ConfigMap x has an annotation helm.sh/hook that Helm does not know, and is applied as any other object"},
		{"Argo CD's before Helm's", `{helm.sh/hook: pre-install, argocd.argoproj.io/hook: PostSync}`, "PostSync", "BeforeHookCreation", "", false, ""},
		{"convoy's before Argo CD's", `{convoy.kumodo.io/hook: PreSync, argocd.argoproj.io/hook: PostSync}`, "PreSync", "BeforeHookCreation", "", false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := tree{"app/a.yaml": configMap("other"), "app/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: " + test.annotations + "}\n"}
			result, err := content.Render(job(), files.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.warning, strings.Join(result.Warnings, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if left := len(result.Set.Objects) == 1; left != test.left {
				t.Fatalf("left out: %t", left)
			}
			if test.left {
				return
			}
			object := result.Set.Objects[len(result.Set.Objects)-1]
			for i := range result.Set.Objects {
				if result.Set.Objects[i].Name == "x" {
					object = result.Set.Objects[i]
				}
			}
			got := annotationsOf(object)
			wave := got[v1alpha1.AnnotationSyncWave]
			if got[v1alpha1.AnnotationHook] != test.hook || got[v1alpha1.AnnotationHookDeletePolicy] != test.policy || wave != test.wave {
				t.Errorf("got %v", got)
			}
			if hooks := map[bool]int{true: 1}[test.hook != ""]; result.Hooks != hooks {
				t.Errorf("%d hooks are counted", result.Hooks)
			}
		})
	}
}

func TestAHookThatCannotBeUnderstoodIsNamedByItsPlace(t *testing.T) {
	for name, annotations := range map[string]string{
		"a phase that there is not":                 `{convoy.kumodo.io/hook: Presync}`,
		"no phase":                                  `{convoy.kumodo.io/hook: ""}`,
		"a policy that there is not":                `{convoy.kumodo.io/hook: PreSync, convoy.kumodo.io/hook-delete-policy: Never}`,
		"a timeout that is no number":               `{convoy.kumodo.io/hook: PreSync, convoy.kumodo.io/hook-timeout: 5m}`,
		"a timeout of more than a day":              `{convoy.kumodo.io/hook: PreSync, convoy.kumodo.io/hook-timeout: "86401"}`,
		"a name, which is that of spec.lifecycle's": `{convoy.kumodo.io/hook: PreSync, convoy.kumodo.io/hook-name: migrate}`,
		"a word that Argo CD does not know":         `{argocd.argoproj.io/hook: presync}`,
		"a policy that Argo CD does not know":       `{argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: Never}`,
		"a policy that Helm does not know":          `{helm.sh/hook: pre-install, helm.sh/hook-delete-policy: never}`,
	} {
		t.Run(name, func(t *testing.T) {
			files := tree{"app/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: " + annotations + "}\n"}
			_, err := content.Render(job(), files.files(), nil)
			if err == nil || !strings.Contains(err.Error(), "app/b.yaml, document 1, line 1: ConfigMap x: a hook cannot be understood") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestARenderOfHooksAloneIsEmpty(t *testing.T) {
	files := tree{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {convoy.kumodo.io/hook: PostSync}}\n"}
	_, err := content.Render(job(), files.files(), nil)
	if !errors.Is(err, content.ErrEmpty) || !strings.Contains(err.Error(), "1 hooks, which would delete all that runs") {
		t.Errorf("PR-06: got %v", err)
	}
	result, err := content.Render(job(func(j *content.Job) { j.AllowEmpty = true }), files.files(), nil)
	if err != nil || result.Hooks != 1 {
		t.Errorf("where it is permitted: %v", err)
	}
}

func lifecycleJob(hooks ...content.Hook) content.Job {
	return job(func(j *content.Job) {
		j.Hooks = hooks
		j.World.Cluster = map[string]string{"name": "edge-1", "region": "eu"}
	})
}

func TestHooksOfTheReleaseAreRenderedWithWhatIsKnownOfTheCluster(t *testing.T) {
	j := lifecycleJob(content.Hook{
		Name: "migrate", Phases: []string{"PreSync"}, Wave: 3, Seconds: 60, DeletePolicy: []string{"HookSucceeded"},
		Object: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate-{{ .cluster.name }}"},"spec":{"backoffLimit":0,"template":{"spec":{"containers":[{"name":"c","image":"migrate:1","args":["{{ .cluster.region }}","{{ .self.name }}"]}]}}}}`,
	})
	j.Mutations = []content.Mutation{{Type: v1alpha1.MutationMergePatch, Bodies: []string{"metadata: {labels: {mutated: 'yes'}}"}}}
	result, err := content.Render(j, tree{"app/a.yaml": configMap("a")}.files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0 a", "3 migrate-edge-1"}, names(result.Set)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	object := result.Set.Objects[1]
	want := map[string]string{
		v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookDeletePolicy: "HookSucceeded", v1alpha1.AnnotationSyncWave: "3",
		v1alpha1.AnnotationHookName: "migrate", v1alpha1.AnnotationHookTimeout: "60",
	}
	if diff := cmp.Diff(want, annotationsOf(object)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := manifest.Append(nil, object.Content)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"args":["eu","shop"]`) || strings.Contains(string(text), "mutated") {
		t.Errorf("got %s", text)
	}
	if diff := cmp.Diff([]string{"cluster.name", "cluster.region", "self.name"}, result.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if result.Hooks != 1 {
		t.Errorf("%d hooks", result.Hooks)
	}
}

func TestAHookOfTheReleaseThatCannotBeRenderedIsNamed(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}`
	for name, test := range map[string]struct{ object, want string }{
		"a key that the cluster lacks":  {head + `,"data":{"a":"{{ .cluster.zone }}"}}`, "spec.lifecycle.hooks[0] (h): data.a: there is no such key: cluster.zone, on cluster edge-1"},
		"an object that is asked about": {head + `,"data":{"a":"{{ .object.kind }}"}}`, "data.a: there is no such key: object"},
		"a template that is none":       {head + `,"data":{"a":"{{ if }}"}}`, "data.a: the template fails"},
		"no object":                     {`{"apiVersion":"v1","kind":"ConfigMap"}`, "metadata: is missing"},
		"an owner of convoy's":          {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"convoy.kumodo.io/owner":"h/r"}}}`, "carries a key that only convoy writes"},
		"an object that the source has": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, "the same object twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := content.Render(lifecycleJob(content.Hook{Name: "h", Phases: []string{"PreSync"}, Object: test.object}), tree{"app/a.yaml": configMap("a")}.files(), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
