// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

func manual(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Automatic = new(bool) }

// One after the other: the last one takes the agent away.
func TestWhatRunsCanBeAskedFor(t *testing.T) {
	ctx := deadline(t)
	err := shared.hub.Create(ctx,
		install.Release(team, "shop", edge, "apps", "shop"), install.Release(team, "manual", edge, "apps", "manual", manual), install.Release(team, "hooked", edge, "apps", "hooked", note))
	if err != nil {
		t.Fatal(err)
	}
	ready(ctx, t, "shop")
	t.Run("health is live, object by object", healthIsLive)
	t.Run("a render that waits is compared with what runs", aRenderWaits)
	t.Run("in manual mode drift is shown and stays", driftIsShown)
	t.Run("hooks have run, and are their own right", hooksHaveRun)
	t.Run("history says what was applied", historyIsTold)
	t.Run("without an agent it is as it was, and said so", theAgentIsAway)
}

func ready(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if _, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.Releases, team, name, harness.HasCondition("Ready", metav1.ConditionTrue, "")); err != nil {
		t.Fatal(err)
	}
}

func healthIsLive(t *testing.T) {
	ctx := deadline(t)
	got := until(ctx, t, "live health", func(a answer) bool {
		return a.code == 0 && strings.Contains(a.problems, "live, order") && strings.Count(a.out, "Healthy") == 2
	}, "health", "shop")
	for _, says := range []string{"configmap/shop -n " + team, "secret/shop -n " + team} {
		if !strings.Contains(got.out, says) {
			t.Errorf("it does not show %q:\n%s", says, got.out)
		}
	}
	if got := until(ctx, t, "no difference", func(a answer) bool { return a.code == 0 }, "diff", "shop"); got.out != "" {
		t.Errorf("it shows differences:\n%s", got.out)
	}
}

func aRenderWaits(t *testing.T) {
	ctx := deadline(t)
	until(ctx, t, "all is new", func(a answer) bool { return a.code == 1 && strings.Contains(a.out, "+  color: red") }, "diff", "manual")
	if got := admin(ctx, t, "sync", "manual", "--wait"); got.code != 0 {
		t.Fatal(got.problems)
	}
	until(ctx, t, "all is applied", func(a answer) bool { return a.code == 0 && a.out == "" }, "diff", "manual")
	if _, err := shared.repo.Commit(ctx, "second", app("blue")); err != nil {
		t.Fatal(err)
	}
	if got := admin(ctx, t, "sync", "shop", "--wait"); got.code != 0 { // fetches for all
		t.Fatal(got.problems)
	}
	ask(ctx, t, "manual")
	got := until(ctx, t, "the new render waits", func(a answer) bool {
		return a.code == 1 && strings.Contains(a.out, "-  color: red\n+  color: blue\n")
	}, "diff", "manual")
	if strings.Contains(got.out, "kind: Secret") {
		t.Errorf("the Secret did not change:\n%s", got.out)
	}
}

// ask the hub to look at a Release again, without a sync.
func ask(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	patch := []byte(`{"spec":{"syncPolicy":{"interval":"10s"}}}`)
	if _, err := shared.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func driftIsShown(t *testing.T) {
	ctx := deadline(t)
	onEdge := shared.edge.Plane.Dynamic()
	if _, err := onEdge.Resource(configMaps).Namespace(team).Patch(ctx, "manual", types.MergePatchType, []byte(`{"data":{"color":"green"}}`), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	if _, err := onEdge.Resource(secrets).Namespace(team).Patch(ctx, "manual", types.MergePatchType, []byte(`{"stringData":{"password":"`+other+`"}}`), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	got := until(ctx, t, "drift", func(a answer) bool {
		return a.code == 1 && strings.Contains(a.out, "-\"green\"\n+\"red\"\n") && strings.Contains(a.out, "secret/manual")
	}, "diff", "manual")
	if !strings.Contains(got.out, "by somebody @@") || !strings.Contains(got.out, "***") {
		t.Errorf("it names no manager, or does not mask:\n%s", got.out)
	}
	live, err := onEdge.Resource(configMaps).Namespace(team).Get(ctx, "manual", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := live.Object["data"].(map[string]any); data["color"] != "green" {
		t.Errorf("it was repaired: %v", data)
	}
}

// note is a hook that succeeds as soon as it is there.
func note(r *corev1alpha1.Release) {
	hook := corev1alpha1.Hook{Name: "note", Phases: []corev1alpha1.HookPhase{corev1alpha1.HookPreSync}}
	hook.Object.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"note-{{ .self.name }}"},"data":{"cluster":"{{ .cluster.name }}"}}`)
	r.Spec.Lifecycle.Hooks = []corev1alpha1.Hook{hook}
}

func hooksHaveRun(t *testing.T) {
	ctx := deadline(t)
	ready(ctx, t, "hooked")
	until(ctx, t, "the hook has run", func(a answer) bool {
		return a.code == 0 && strings.Contains(strings.Join(strings.Fields(a.out), " "), "note PreSync Succeeded")
	}, "lifecycle", "hooked")
	made, err := shared.edge.Plane.Dynamic().Resource(configMaps).Namespace(team).Get(ctx, "note-hooked", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := made.Object["data"].(map[string]any); data["cluster"] != edge {
		t.Errorf("the hook was made as %v", data)
	}
	if got := admin(ctx, t, "preview", "hooked"); got.code != 0 || !strings.Contains(got.out, "convoy.kumodo.io/hook: PreSync") || !strings.Contains(got.out, "name: note-hooked") {
		t.Errorf("the preview shows no hook: %s%s", got.out, got.problems)
	}

	const viewer, editor = "view", "edit"
	looks := user(ctx, t, viewer)
	user(ctx, t, editor)
	body := `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"ReleaseLifecycle","metadata":{"name":"hooked"}`
	put := body + `,"spec":{"hooks":[{"name":"later","phases":["PostSync"],"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"later"}}}]}}`
	retry := body + `,"request":{"hook":"note","run":"nobody-knows","action":"retry"}}`
	for _, test := range []struct{ name, as, verb, body, says string }{
		{"a viewer may look", viewer, "GET", "", ""},
		{"a viewer may not change them", viewer, "PUT", put, `cannot update resource "releases/lifecycle"`},
		{"a viewer may not act on a run", viewer, "POST", retry, `cannot create resource "releases/lifecycle"`},
		{"a run that nobody knows is not found", editor, "POST", retry, `request.run: Not found`},
		{"an editor may change them", editor, "PUT", put, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := lifecycle(ctx, t, test.as, test.verb, test.body)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	_, err = harness.WaitFor(ctx, shared.edge.Plane.Dynamic(), configMaps, team, "later", func(*unstructured.Unstructured) (bool, error) { return true, nil })
	if err != nil {
		t.Errorf("the new hook has not run: %v", err)
	}
	if got := plugin(ctx, t, looks, "diff", "shop"); got.code < 2 || !strings.Contains(got.problems, `cannot get resource "releases/diff"`) {
		t.Errorf("a viewer's diff: exit code %d: %s", got.code, got.problems)
	}
	if got := plugin(ctx, t, looks, "health", "shop"); got.code != 0 {
		t.Errorf("a viewer's health: exit code %d: %s", got.code, got.problems)
	}
}

// lifecycle asks the subresource of Release hooked as somebody.
func lifecycle(ctx context.Context, t *testing.T, name, verb, body string) error {
	t.Helper()
	config, err := shared.hub.Plane.UserConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	request := client.RESTClient().Verb(verb).AbsPath("/apis/" + corev1alpha1.SchemeGroupVersion.String() + "/namespaces/" + team + "/releases/hooked/lifecycle")
	if body != "" {
		request = request.SetHeader("Content-Type", "application/json").Body([]byte(body))
	}
	return request.Do(ctx).Error()
}

func historyIsTold(t *testing.T) {
	ctx := deadline(t)
	got := until(ctx, t, "two renders", func(a answer) bool { return a.code == 0 && strings.Count(a.out, "main@sha1:") == 2 }, "history", "shop")
	if strings.Count(got.out, "current, applied") != 1 || strings.Contains(got.out, "not stored") {
		t.Errorf("got\n%s", got.out)
	}
}

func theAgentIsAway(t *testing.T) {
	ctx := deadline(t)
	if err := shared.edge.Pod.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	got := until(ctx, t, "it is said", func(a answer) bool {
		return a.code == 0 && strings.Contains(a.problems, "NOT LIVE: Cluster "+edge+" is not connected; as it was known")
	}, "health", "shop")
	if strings.Count(got.out, "Healthy") != 2 {
		t.Errorf("got\n%s", got.out)
	}
	if got := admin(ctx, t, "diff", "shop"); got.code != 2 || got.out != "" || !strings.Contains(got.problems, "whether it differs is not known") {
		t.Errorf("a diff: exit code %d: %s%s", got.code, got.out, got.problems)
	}
	if got := admin(ctx, t, "diff", "manual"); got.code != 1 || !strings.Contains(got.out, "+  color: blue") || !strings.Contains(got.out, "configmap/manual") {
		t.Errorf("a diff of what is known: exit code %d: %s%s", got.code, got.out, got.problems)
	}
}
