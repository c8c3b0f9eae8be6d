// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

var (
	hookSecrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	hookDeployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

const foreignNote = "no hook of this Release made"

// foreign makes an object by somebody else's hand.
func (b *bench) foreign(gvr schema.GroupVersionResource, ns, name, document string) types.UID {
	b.t.Helper()
	if _, err := b.plane.KubectlInput(b.ctx, document, "create", "-n", ns, "-f", "-"); err != nil {
		b.t.Fatal(err)
	}
	return b.get(gvr, ns, name).GetUID()
}

// untouched says that an object is still the one that it was, and not on its way out.
func (b *bench) untouched(gvr schema.GroupVersionResource, ns, name string, uid types.UID) {
	b.t.Helper()
	u := b.get(gvr, ns, name)
	if u.GetUID() != uid || u.GetDeletionTimestamp() != nil {
		b.t.Errorf("%s %s/%s was %s, and is %s, deleted at %v", gvr.Resource, ns, name, uid, u.GetUID(), u.GetDeletionTimestamp())
	}
}

// owned waits until an order is refused for an object that is somebody else's.
func (b *bench) owned(o tunnel.Order, object string) {
	b.t.Helper()
	b.report(o.Release.UID, "refused as another's", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.False && r.Applied.Reason == "OwnedByOther" &&
			strings.Contains(r.Applied.Message, object) && strings.Contains(r.Applied.Message, foreignNote)
	})
}

func secretDoc(name, annotations, data string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", " + annotations + "}\nstringData: " + data + "\n---\n"
}

func deploymentDoc(name, annotations string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, ` + annotations + `}
spec:
  replicas: 0
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec: {containers: [{name: c, image: "example/theirs:1"}]}
---
`
}

func TestAForeignSecretIsNotDeletedWhenAHookSucceeds(t *testing.T) {
	inModes(t, testAForeignSecretIsNotDeletedWhenAHookSucceeds)
}

func testAForeignSecretIsNotDeletedWhenAHookSucceeds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("foreign-succeeded")
	uid := b.foreign(hookSecrets, ns, "theirs", secretDoc("theirs", "labels: {a: b}", `{password: "1"}`))
	hook := secretDoc("theirs", hookOf("PreSync", "hook-delete-policy", "HookSucceeded"), `{own: "2"}`)
	b.owned(b.accept(b.order("foreign-succeeded", ns, configMap(ns, "main", "k", "v")+hook, withHooks)), "Secret foreign-succeeded/theirs")
	b.untouched(hookSecrets, ns, "theirs", uid)
	b.absent(configmaps, ns, "main")

	// Where fields may be taken from others it is changed in place, and stays: when the
	// hook has succeeded, at the next render that deletes before, and after the removal.
	force := func(o *tunnel.Order) { o.Policy.ForceConflicts = true }
	b.apply("foreign-succeeded", ns, configMap(ns, "main", "k", "v")+hook, withHooks, force)
	b.untouched(hookSecrets, ns, "theirs", uid)
	b.restart()
	b.apply("foreign-succeeded", ns, configMap(ns, "main", "k", "v2")+secretDoc("theirs", hookOf("PreSync", "hook-delete-policy", "BeforeHookCreation,HookSucceeded,HookFailed"), `{own: "3"}`), withHooks)
	b.untouched(hookSecrets, ns, "theirs", uid)
	o := b.accept(b.bare("foreign-succeeded", tunnel.VerbRemove))
	r := b.report(o.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done })
	b.untouched(hookSecrets, ns, "theirs", uid)
	data, _, err := unstructured.NestedStringMap(b.get(hookSecrets, ns, "theirs").Object, "data")
	if err != nil || data["password"] != "MQ==" || data["own"] != "Mw==" {
		t.Errorf("its data is %v, %v", data, err)
	}
	if !strings.Contains(r.Applied.Message, "left Secret foreign-succeeded/theirs, which was there before a PreSync hook") {
		t.Errorf("applied is %+v", r.Applied)
	}
}

func TestAForeignSecretIsNotDeletedBeforeAHookIsMadeAtTheNextRender(t *testing.T) {
	inModes(t, testAForeignSecretIsNotDeletedBeforeAHookIsMadeAtTheNextRender)
}

func testAForeignSecretIsNotDeletedBeforeAHookIsMadeAtTheNextRender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("foreign-render")
	uid := b.foreign(hookSecrets, ns, "theirs", secretDoc("theirs", "labels: {a: b}", `{password: "1"}`))
	for _, value := range []string{"v1", "v2"} {
		o := b.accept(b.order("foreign-render", ns, configMap(ns, "main", "k", value)+secretDoc("theirs", hookOf("PreSync"), `{own: "`+value+`"}`), withHooks))
		b.owned(o, "Secret foreign-render/theirs")
		b.untouched(hookSecrets, ns, "theirs", uid)
	}
	// What a hook of the Release made is made anew, as its policy says; when somebody puts
	// another one in its place, that is not touched.
	b.apply("foreign-render", ns, configMap(ns, "main", "k", "v3")+secretDoc("own", hookOf("PreSync"), `{own: "1"}`), withHooks)
	made := b.get(hookSecrets, ns, "own").GetUID()
	b.apply("foreign-render", ns, configMap(ns, "main", "k", "v4")+secretDoc("own", hookOf("PreSync"), `{own: "2"}`), withHooks)
	if again := b.get(hookSecrets, ns, "own").GetUID(); again == made {
		t.Error("it was not made anew")
	}
	if _, err := b.plane.Kubectl(b.ctx, "delete", "secret", "-n", ns, "own"); err != nil {
		t.Fatal(err)
	}
	uid = b.foreign(hookSecrets, ns, "own", secretDoc("own", "labels: {a: b}", `{password: "1"}`))
	b.owned(b.accept(b.order("foreign-render", ns, configMap(ns, "main", "k", "v5")+secretDoc("own", hookOf("PreSync"), `{own: "3"}`), withHooks)), "Secret foreign-render/own")
	b.untouched(hookSecrets, ns, "own", uid)
}

func TestAForeignSecretIsNotDeletedWhenAHookIsTriedAgain(t *testing.T) {
	inModes(t, testAForeignSecretIsNotDeletedWhenAHookIsTriedAgain)
}

func testAForeignSecretIsNotDeletedWhenAHookIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("foreign-retry")
	// It comes when the render has been tried already, while an earlier hook runs.
	render := configMap(ns, "main", "k", "v") + idle("first", hookOf("PreSync", "sync-wave", "-1")) + secretDoc("theirs", hookOf("PreSync"), `{own: "1"}`)
	o := b.accept(b.order("foreign-retry", ns, render, withHooks))
	b.appears(jobs, ns, "first")
	uid := b.foreign(hookSecrets, ns, "theirs", secretDoc("theirs", "labels: {a: b}", `{password: "1"}`))
	b.endJob(ns, "first", true)
	b.report(o.Release.UID, "hook failed", failedBy("Secret foreign-retry/theirs failed: an object of this name is there that "+foreignNote))
	b.owned(o, "Secret foreign-retry/theirs") // at the attempt that follows
	b.untouched(hookSecrets, ns, "theirs", uid)
	// Somebody retries it by hand.
	o = b.accept(b.order("foreign-retry", ns, render, withHooks))
	b.owned(o, "Secret foreign-retry/theirs")
	b.untouched(hookSecrets, ns, "theirs", uid)
}

func TestAForeignDeploymentIsNotDeletedAtTheDeadlineOfAHook(t *testing.T) {
	inModes(t, testAForeignDeploymentIsNotDeletedAtTheDeadlineOfAHook)
}

func testAForeignDeploymentIsNotDeletedAtTheDeadlineOfAHook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("foreign-deadline")
	uid := b.foreign(hookDeployments, ns, "theirs", deploymentDoc("theirs", "labels: {a: b}"))
	hook := strings.Replace(deploymentDoc("theirs", hookOf("PreSync", "hook-timeout", "2", "hook-delete-policy", "BeforeHookCreation,HookSucceeded,HookFailed")), "replicas: 0", "replicas: 1", 1)
	hook = strings.Replace(hook, "spec: {containers", "spec: {nodeSelector: {nowhere: \"true\"}, containers", 1)
	b.owned(b.accept(b.order("foreign-deadline", ns, configMap(ns, "main", "k", "v")+hook, withHooks)), "apps/Deployment foreign-deadline/theirs")
	b.untouched(hookDeployments, ns, "theirs", uid)
	// Changed in place it does not become ready, and stays.
	o := b.accept(b.order("foreign-deadline", ns, configMap(ns, "main", "k", "v")+hook, withHooks, func(o *tunnel.Order) { o.Policy.ForceConflicts = true }))
	b.report(o.Release.UID, "late", failedBy("apps/Deployment foreign-deadline/theirs failed: DeadlinePassed"))
	b.report(o.Release.UID, "tried again", func(r tunnel.Report) bool { return len(r.Hooks) > 1 })
	b.untouched(hookDeployments, ns, "theirs", uid)
}

func TestAForeignSecretIsNotDeletedByAHookBeforeARemoval(t *testing.T) {
	inModes(t, testAForeignSecretIsNotDeletedByAHookBeforeARemoval)
}

func testAForeignSecretIsNotDeletedByAHookBeforeARemoval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns, elsewhere := b.namespace("foreign-removal"), b.namespace("foreign-elsewhere")
	hook := strings.Replace(secretDoc("theirs", hookOf("PreDelete", "hook-delete-policy", "HookSucceeded"), `{own: "1"}`), "{name: theirs,", "{name: theirs, namespace: "+elsewhere+",", 1)
	uid := b.foreign(hookSecrets, elsewhere, "theirs", secretDoc("theirs", "labels: {a: b}", `{password: "1"}`))
	b.owned(b.accept(b.order("foreign-removal", ns, configMap(ns, "main", "k", "v")+hook, withHooks)), "Secret foreign-elsewhere/theirs")
	// It may come after the render was applied, too.
	late := strings.ReplaceAll(hook, "theirs", "late")
	b.apply("foreign-removal", ns, configMap(ns, "main", "k", "v")+late, withHooks)
	second := b.foreign(hookSecrets, elsewhere, "late", secretDoc("late", "labels: {a: b}", `{password: "1"}`))
	o := b.accept(b.bare("foreign-removal", tunnel.VerbRemove))
	r := b.report(o.Release.UID, "held", failedBy("Secret foreign-elsewhere/late failed: an object of this name is there that "+foreignNote))
	b.untouched(hookSecrets, elsewhere, "theirs", uid)
	b.untouched(hookSecrets, elsewhere, "late", second)
	b.get(configmaps, ns, "main")
	last := b.accept(b.bare("foreign-removal", tunnel.VerbRemove, acting(action("skip", r.Hooks[0]))))
	b.report(last.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done && r.Sequence == last.Sequence })
	b.gone(configmaps, ns, "main")
	b.untouched(hookSecrets, elsewhere, "late", second)
}

func TestAFailedRunThatIsAbortedStaysAbortedAndARetryRunsItOnce(t *testing.T) {
	inModes(t, testAFailedRunThatIsAbortedStaysAbortedAndARetryRunsItOnce)
}

func testAFailedRunThatIsAbortedStaysAbortedAndARetryRunsItOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("aborts")
	once := func(o *tunnel.Order) { o.Policy.Retry = &tunnel.Retry{Limit: 1, MinSeconds: 1, MaxSeconds: 1} }
	render := configMap(ns, "main", "k", "v") + hookMap("alarm", hookOf("SyncFailed")) +
		idle("ask", hookOf("PreSync", "hook-timeout", "1"))
	const ask = "Job/aborts/ask"
	o := b.accept(b.order("aborts", ns, render, withHooks, once))
	r := b.report(o.Release.UID, "given up", func(r tunnel.Report) bool { return r.Settled && r.Applied.Reason == "RetriesExhausted" })
	alarm := "SyncFailed ConfigMap/aborts/alarm Succeeded"
	b.wantRuns(r, "PreSync "+ask+" Failed", alarm, "PreSync "+ask+" Failed")
	last := lastRun(r, ask)

	o = b.accept(b.order("aborts", ns, render, withHooks, once, acting(action("abort", last))))
	r = b.report(o.Release.UID, "aborted", func(r tunnel.Report) bool { return r.Sequence == o.Sequence && failedBy("was ended")(r) })
	b.wantRuns(r, "PreSync "+ask+" Failed", alarm, "PreSync "+ask+" Aborted")

	o = b.accept(b.order("aborts", ns, render, withHooks, once, acting(action("retry", last))))
	r = b.report(o.Release.UID, "given up again", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "RetriesExhausted"
	})
	b.wantRuns(r, "PreSync "+ask+" Failed", alarm, "PreSync "+ask+" Aborted", "PreSync "+ask+" Failed", alarm)
}
