// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	known "kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/pkg/tunnel"
)

// caseFiles reads the tree of the first step of a case.
func caseFiles(t testing.TB, id string) []files.File {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../testdata/cases", id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Tree map[string]string `yaml:"tree"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil || len(document.Tree) == 0 {
		t.Fatalf("case %s has no tree: %v", id, err)
	}
	var list []files.File
	for name, text := range document.Tree {
		list = append(list, files.File{Name: name, Data: []byte(text)})
	}
	return list
}

// chart renders the chart of a case, as the hub does, and makes an order of it.
func (b *bench) chart(id, release, namespace, values string) tunnel.Order {
	b.t.Helper()
	result, err := content.Render(content.Job{
		Content: v1alpha1.ReleaseContent{Path: "app"}, Namespace: namespace,
		Values: []content.Values{{Origin: "values", Text: values}},
		World: known.World{
			Self:        known.Self{Name: release, Namespace: "apps", TargetNamespace: namespace, UID: "uid-" + release},
			KubeVersion: "v1.37.2", APIVersions: []string{"v1", "apps/v1", "batch/v1"},
		},
	}, files.New(caseFiles(b.t, id), nil), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if result.Hooks == 0 {
		b.t.Fatal("the chart has no hooks")
	}
	var plain, sealed bytes.Buffer
	if _, err := result.Set.Write(&plain, &sealed, []byte("mac key of the test"), bytes.Repeat([]byte{7}, 32)); err != nil {
		b.t.Fatal(err)
	}
	o := b.bare(release, tunnel.VerbApply, withHooks, seconds(60))
	o.Objects, o.Policy.Namespace = b.blobs.put(plain.Bytes()), namespace
	return o
}

func TestHE07HooksOfAChartRunOnceForEachRenderAndHoldBackWhatTheyGuard(t *testing.T) {
	inModes(t, testHE07HooksOfAChartRunOnceForEachRenderAndHoldBackWhatTheyGuard)
}

func testHE07HooksOfAChartRunOnceForEachRenderAndHoldBackWhatTheyGuard(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const ns, slow = "t-he-07", `{"metadata":{"finalizers":null}}`
	b.namespace(ns)
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// No Pod is made here, so that Jobs end when the test says.
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {pods: \"0\"}}\n"
	if _, err := b.plane.KubectlInput(b.ctx, quota, "create", "-n", ns, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	b.live(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, ns, "none", "counted", func(u *unstructured.Unstructured) bool {
		_, there, err := unstructured.NestedString(u.Object, "status", "hard", "pods")
		return err == nil && there
	})

	// Installed.
	v1 := b.accept(b.chart("HE-07", "app", ns, `{rev: "1", ok: "true"}`))
	first := b.appears(jobs, ns, "prepare").GetUID()
	b.get(accounts, ns, "prepare")
	b.absent(configmaps, ns, "main")
	b.endJob(ns, "prepare", true)
	r := b.applied(v1)
	b.gone(accounts, ns, "prepare")
	prepare, account, welcomes := "Job/"+ns+"/prepare", "ServiceAccount/"+ns+"/prepare", "ConfigMap/"+ns+"/welcome"
	want := []string{"PreSync " + account + " Succeeded", "PreSync " + prepare + " Succeeded", "PostSync " + welcomes + " Succeeded"}
	b.wantRuns(r, want...)
	if raw := b.get(definitions, "", "hooks.he07.example.test").GetAnnotations()["raw"]; raw != "{{ .Release.Name }}" {
		t.Errorf("the definition's annotation is %q", raw)
	}
	b.get(schema.GroupVersionResource{Group: "he07.example.test", Version: "v1", Resource: "hooks"}, ns, "uses-crd")
	welcome := b.get(configmaps, ns, "welcome").GetUID()
	b.absent(pods, ns, "probe")
	b.absent(configmaps, ns, "bye")

	// Polled: the hub orders nothing anew; even orders that say the same run none.
	for range 20 {
		again := b.chart("HE-07", "app", ns, `{rev: "1", ok: "true"}`)
		if again.Objects.Digest != v1.Objects.Digest {
			t.Fatal("the same chart rendered differently")
		}
		r = b.applied(b.accept(again))
	}
	b.wantRuns(r, want...)
	if uid := b.get(jobs, ns, "prepare").GetUID(); uid != first {
		t.Error("the Job is another one")
	}

	// Upgraded: the old Job goes really first, which its finalizer delays.
	v2 := b.accept(b.chart("HE-07", "app", ns, `{rev: "2", ok: "true"}`))
	b.report("uid-app", "waiting for the old Job to go", func(r tunnel.Report) bool {
		return r.Sequence == v2.Sequence && strings.Contains(r.Applied.Message, "held by finalizer he07.example.test/slow")
	})
	if uid := b.get(jobs, ns, "prepare").GetUID(); uid != first {
		t.Error("the Job is another one")
	}
	b.edit(jobs, ns, "prepare", "holder", slow)
	b.live(jobs, ns, "prepare", "made anew", func(u *unstructured.Unstructured) bool { return u.GetUID() != first })
	b.endJob(ns, "prepare", true)
	r = b.applied(v2)
	want = append(want, "PreSync "+account+" Succeeded", "PreSync "+prepare+" Succeeded")
	b.wantRuns(r, want...)
	if uid := b.get(configmaps, ns, "welcome").GetUID(); uid != welcome {
		t.Error("a hook of the installation ran again")
	}
	if rev := data(b.get(configmaps, ns, "main"), "rev"); rev != "2" {
		t.Errorf("rev is %q", rev)
	}

	// Stopped: the hook fails, and what runs stays. It is tried again after a pause.
	v3 := b.accept(b.chart("HE-07", "app", ns, `{rev: "3", ok: "false"}`))
	b.edit(jobs, ns, "prepare", "holder", slow)
	b.live(jobs, ns, "prepare", "that of v3", func(u *unstructured.Unstructured) bool {
		return u.GetDeletionTimestamp() == nil && strings.Contains(mustJSON(t, u), `"args":["false"]`)
	})
	b.endJob(ns, "prepare", false)
	r = b.report("uid-app", "stopped by its hook", failedBy("PreSync hook batch/Job t-he-07/prepare failed"))
	if rev := data(b.get(configmaps, ns, "main"), "rev"); rev != "2" || r.Sequence != v3.Sequence {
		t.Errorf("rev is %q, the sequence %d", rev, r.Sequence)
	}
	failed := lastRun(r, prepare)
	r = b.report("uid-app", "trying again", func(r tunnel.Report) bool { return lastRun(r, prepare).Run != failed.Run })
	if pause := lastRun(r, prepare).StartedAt.Sub(*failed.FinishedAt); pause < time.Second {
		t.Errorf("it was tried again after %s", pause)
	}
	// The next good render goes on.
	v4 := b.accept(b.chart("HE-07", "app", ns, `{rev: "4", ok: "true"}`))
	b.edit(jobs, ns, "prepare", "holder", slow)
	b.live(jobs, ns, "prepare", "that of v4", func(u *unstructured.Unstructured) bool {
		return u.GetDeletionTimestamp() == nil && strings.Contains(mustJSON(t, u), `"args":["true"]`)
	})
	b.endJob(ns, "prepare", true)
	b.applied(v4)
	if rev := data(b.get(configmaps, ns, "main"), "rev"); rev != "4" {
		t.Errorf("rev is %q", rev)
	}

	// Deleted: nothing hangs on the objects of hooks.
	last := b.accept(b.bare("app", tunnel.VerbRemove))
	b.report("uid-app", "removed", func(r tunnel.Report) bool { return r.Done && r.Sequence == last.Sequence })
	b.gone(configmaps, ns, "main")
	b.get(configmaps, ns, "bye")
	b.get(definitions, "", "hooks.he07.example.test")
	if uid := b.get(configmaps, ns, "welcome").GetUID(); uid != welcome {
		t.Error("welcome is another one")
	}
	if at := b.get(jobs, ns, "prepare").GetDeletionTimestamp(); at == nil {
		t.Error("the Job stays")
	}
	b.edit(jobs, ns, "prepare", "holder", slow)
	b.gone(jobs, ns, "prepare")
}

func mustText(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func mustJSON(t testing.TB, u *unstructured.Unstructured) string {
	t.Helper()
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
