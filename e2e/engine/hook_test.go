// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

var (
	jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

const mergePatch = types.MergePatchType

// withHooks makes an order run the hooks of its render, as the hub's do that has any.
// Pods take their time on a busy machine.
func withHooks(o *tunnel.Order) {
	o.Requires = append(o.Requires, tunnel.FeatureHooks)
	o.Policy.TimeoutSeconds = 60
}

func forceAgain(o *tunnel.Order) { o.Force = true }

func acting(actions ...tunnel.HookAction) option {
	return func(o *tunnel.Order) { o.Actions = actions }
}

func seconds(n int64) option { return func(o *tunnel.Order) { o.Policy.TimeoutSeconds = n } }

// hookOf annotates an object as a hook. Further annotations are key and value.
func hookOf(phases string, more ...string) string {
	out := fmt.Sprintf("convoy.kumodo.io/hook: %q", phases)
	for i := 0; i+1 < len(more); i += 2 {
		out += fmt.Sprintf(", convoy.kumodo.io/%s: %q", more[i], more[i+1])
	}
	return "annotations: {" + out + "}"
}

// job is one whose Pod ends well at once.
func job(name, annotations string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, %s}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: "example/job:1"}]}
---
`, name, annotations)
}

// idle is a Job whose Pod finds no node, so that it ends when the test says.
func idle(name, annotations string) string {
	return strings.Replace(job(name, annotations), "spec: {restartPolicy", "spec: {nodeSelector: {nowhere: \"true\"}, restartPolicy", 1)
}

func hookMap(name, annotations string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, %s}\ndata: {k: v}\n---\n", name, annotations)
}

// endJob ends a Job well or badly, as its controller would.
func (b *bench) endJob(ns, name string, well bool) {
	b.t.Helper()
	for {
		live := b.get(jobs, ns, name)
		now := metav1.Now().UTC().Format(time.RFC3339)
		start, there, err := unstructured.NestedString(live.Object, "status", "startTime")
		if err != nil {
			b.t.Fatal(err)
		}
		if !there {
			start = now
		}
		kinds, extra := []string{"FailureTarget", "Failed"}, ""
		if well {
			kinds, extra = []string{"SuccessCriteriaMet", "Complete"}, fmt.Sprintf(`,"succeeded":1,"completionTime":%q`, now)
		}
		var conditions []string
		for _, kind := range kinds {
			reason := `"reason":"BackoffLimitExceeded","message":"by the test",`
			if well {
				reason = ""
			}
			conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":"True",%s"lastTransitionTime":%q}`, kind, reason, now))
		}
		body := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"startTime":%q,"active":0,"ready":0,"terminating":0,"uncountedTerminatedPods":{},"conditions":[%s]%s}}`,
			live.GetResourceVersion(), start, strings.Join(conditions, ","), extra)
		_, err = b.plane.Dynamic().Resource(jobs).Namespace(ns).Patch(b.ctx, name, mergePatch, []byte(body), metav1.PatchOptions{}, "status")
		if apierrors.IsConflict(err) {
			continue // its controller was quicker
		}
		if err != nil {
			b.t.Fatal(err)
		}
		return
	}
}

// appears waits until an object is there.
func (b *bench) appears(gvr schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	b.t.Helper()
	return b.live(gvr, ns, name, "there", func(*unstructured.Unstructured) bool { return true })
}

// absent says that an object is not there now.
func (b *bench) absent(gvr schema.GroupVersionResource, ns, name string) {
	b.t.Helper()
	if _, err := b.plane.Dynamic().Resource(gvr).Namespace(ns).Get(b.ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.t.Errorf("%s %s/%s: %v, want it not to be there", gvr.Resource, ns, name, err)
	}
}

// ran lists the runs of a report, oldest first, as "phase hook state".
func ran(r tunnel.Report) []string {
	var out []string
	for _, h := range slices.Backward(r.Hooks) {
		out = append(out, h.Phase+" "+h.Hook+" "+h.State)
	}
	return out
}

func (b *bench) wantRuns(r tunnel.Report, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, ran(r)); diff != "" {
		b.t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestHooksRunAroundTheSyncInTheOrderOfTheirWavesOncePerRender(t *testing.T) {
	inModes(t, testHooksRunAroundTheSyncInTheOrderOfTheirWavesOncePerRender)
}

func testHooksRunAroundTheSyncInTheOrderOfTheirWavesOncePerRender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("hooks")
	render := func(value string) string {
		return configMap(ns, "main", "k", value) +
			job("second", hookOf("PreSync", "sync-wave", "2")) + job("first", hookOf("PreSync", "sync-wave", "-3")) +
			job("after", hookOf("PostSync")) + job("failed", hookOf("SyncFailed")) +
			job("once", hookOf("PreInstall", "sync-wave", "5")) + hookMap("later", hookOf("PreUpgrade")) +
			job("farewell", hookOf("PreDelete"))
	}
	_, r := b.apply("hooks", ns, render("v1"), withHooks)
	name := func(n string) string { return "Job/" + ns + "/" + n }
	want := []string{
		"PreSync " + name("first") + " Succeeded", "PreSync " + name("second") + " Succeeded", "PreSync " + name("once") + " Succeeded",
		"PostSync " + name("after") + " Succeeded",
	}
	b.wantRuns(r, want...)
	if r.Counts.Total != 1 || len(r.Inventory) != 1 {
		t.Errorf("counts are %+v, the inventory has %d", r.Counts, len(r.Inventory))
	}
	first, main := b.get(jobs, ns, "first"), b.get(configmaps, ns, "main")
	if first.GetCreationTimestamp().After(main.GetCreationTimestamp().Time) {
		t.Error("the hook came after what it goes before")
	}
	b.absent(jobs, ns, "farewell")
	b.absent(jobs, ns, "failed")
	b.absent(configmaps, ns, "later")

	// A policy-only order, a heal and a restart run none.
	_, r = b.apply("hooks", ns, render("v1"), withHooks, func(o *tunnel.Order) { o.Policy.ForceConflicts = true })
	b.wantRuns(r, want...)
	b.edit(configmaps, ns, "main", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "main", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v1" })
	b.edit(jobs, ns, "first", "somebody", `{"metadata":{"labels":{"a":"b"}}}`)
	b.restart()
	o, r := b.apply("hooks", ns, render("v1"), withHooks)
	b.wantRuns(r, want...)
	if uid := b.get(jobs, ns, "first").GetUID(); uid != first.GetUID() {
		t.Error("the hook ran again")
	}

	// A new render runs them again, those of an upgrade in place of those of an
	// installation; so does the same one that is forced.
	_, r = b.apply("hooks", ns, render("v2"), withHooks)
	again := []string{
		"PreSync " + name("first") + " Succeeded", "PreSync ConfigMap/" + ns + "/later Succeeded", "PreSync " + name("second") + " Succeeded",
		"PostSync " + name("after") + " Succeeded",
	}
	want = append(want, again...)
	b.wantRuns(r, want...)
	if uid := b.get(jobs, ns, "first").GetUID(); uid == first.GetUID() {
		t.Error("the hook did not run again")
	}
	_, r = b.apply("hooks", ns, render("v2"), withHooks, forceAgain)
	want = append(want, again...)
	b.wantRuns(r, want...)
	_ = o

	remove := b.accept(b.bare("hooks", tunnel.VerbRemove))
	r = b.report(remove.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done })
	b.wantRuns(r, append(want, "PreDelete "+name("farewell")+" Succeeded")...)
	b.gone(configmaps, ns, "main")
	for _, n := range []string{"first", "second", "after", "once", "farewell"} {
		b.gone(jobs, ns, n)
	}
	b.get(configmaps, ns, "later") // it may be data
}

func TestAHookThatFailsBeforeTheSyncStopsItAndIsTriedAgainAlone(t *testing.T) {
	inModes(t, testAHookThatFailsBeforeTheSyncStopsItAndIsTriedAgainAlone)
}

func testAHookThatFailsBeforeTheSyncStopsItAndIsTriedAgainAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("stops")
	b.apply("stops", ns, configMap(ns, "main", "k", "v1")+configMap(ns, "old", "k", "v1"), withHooks)
	next := configMap(ns, "main", "k", "v2") + job("prepare", hookOf("PreSync")) + idle("check", hookOf("PreSync", "sync-wave", "1")) +
		hookMap("alarm", hookOf("SyncFailed"))
	o := b.accept(b.order("stops", ns, next, withHooks))
	b.appears(jobs, ns, "check")
	prepared := b.get(jobs, ns, "prepare").GetUID()
	b.endJob(ns, "check", false)
	r := b.report(o.Release.UID, "hook failed", func(r tunnel.Report) bool { return r.Settled && r.Applied.Reason == "HookFailed" })
	if !strings.Contains(r.Applied.Message, "batch/Job stops/check") || !strings.Contains(r.Applied.Message, "nothing of the render was applied") {
		t.Errorf("applied is %+v", r.Applied)
	}
	b.wantRuns(r, "PreSync Job/stops/prepare Succeeded", "PreSync Job/stops/check Failed", "SyncFailed ConfigMap/stops/alarm Succeeded")
	if data(b.get(configmaps, ns, "main"), "k") != "v1" {
		t.Error("the new render was applied")
	}
	// What runs is kept as it is.
	b.edit(configmaps, ns, "old", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "old", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v1" })
	// The next attempt runs that hook alone.
	failed := b.get(jobs, ns, "check").GetUID()
	b.live(jobs, ns, "check", "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != failed })
	b.endJob(ns, "check", true)
	r = b.applied(o)
	b.wantRuns(r, "PreSync Job/stops/prepare Succeeded", "PreSync Job/stops/check Failed", "SyncFailed ConfigMap/stops/alarm Succeeded", "PreSync Job/stops/check Succeeded")
	if uid := b.get(jobs, ns, "prepare").GetUID(); uid != prepared {
		t.Error("a hook that had succeeded ran again")
	}
	if data(b.get(configmaps, ns, "main"), "k") != "v2" {
		t.Error("the new render was not applied")
	}
	b.gone(configmaps, ns, "old")
}
