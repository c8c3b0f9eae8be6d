// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestPR14WhatTheGarbageCollectorDeletesForItsOwnerIsToldAndNotMadeAgainAndAgain(t *testing.T) {
	inModes(t, testPR14WhatTheGarbageCollectorDeletesForItsOwnerIsToldAndNotMadeAgainAndAgain)
}

func testPR14WhatTheGarbageCollectorDeletesForItsOwnerIsToldAndNotMadeAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr14")
	owned := func(name, value string) string {
		return strings.Replace(configMap(ns, name, "k", value), "namespace: "+ns,
			"namespace: "+ns+", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: 00000000-0000-0000-0000-000000000009}]", 1)
	}
	rest := configMap(ns, "owner", "k", "v") + configMap(ns, "lives", "k", "v")
	made := b.applies("configmaps", "child")
	o := b.accept(b.order("pr14", ns, rest+owned("child", "v")))
	r := b.report("uid-pr14", "what becomes of it", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.InSync.Status == tunnel.False && r.Healthy.Status == tunnel.False && len(r.Exceptions) == 1 &&
			strings.Contains(r.Exceptions[0].Message, "garbage collector deletes it")
	})
	if e := r.Exceptions[0]; e.Reason != "Drifted" || e.Name != "child" || !strings.Contains(e.Message, "ConfigMap owner with UID 00000000-0000-0000-0000-000000000009") {
		t.Errorf("exception %+v", e)
	}
	b.repaired(ns, "lives")
	if n := made.Load(); n != 1 {
		t.Errorf("it was made %d times", n)
	}
	// What lives is not given to an owner for which it would be deleted.
	lives := b.get(configmaps, ns, "lives").GetUID()
	o = b.accept(b.order("pr14", ns, configMap(ns, "owner", "k", "v")+owned("lives", "v2")))
	if r := b.settled(o); r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "garbage collector deletes it") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if got := b.get(configmaps, ns, "lives"); got.GetUID() != lives || len(got.GetOwnerReferences()) != 0 || data(got, "k") != "v" {
		t.Errorf("it was changed: %v", got.Object)
	}
	b.apply("pr14", ns, rest+configMap(ns, "child", "k", "v"))
}

func TestPR12ANamespaceThatIsBeingDeletedIsNamedAndAllComesBackWhenItIsGone(t *testing.T) {
	inModes(t, testPR12ANamespaceThatIsBeingDeletedIsNamedAndAllComesBackWhenItIsGone)
}

func testPR12ANamespaceThatIsBeingDeletedIsNamedAndAllComesBackWhenItIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const ns = "pr12-ends"
	o, _ := b.apply("pr12", ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+"}\n---\n"+
		configMap(ns, "a", "k", "v")+configMap(ns, "b", "k", "v")+secretDoc("c", "namespace: "+ns, `{k: v}`))
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "theirs", "finalizers": []any{"pr12.example.test/hold"}},
	}}
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Create(b.ctx, theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := b.get(namespaces, "", ns).GetUID()
	if err := b.plane.Dynamic().Resource(namespaces).Delete(b.ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r := b.report("uid-pr12", "what is going on", func(r tunnel.Report) bool {
		told := 0
		for _, e := range r.Exceptions {
			if e.Namespace == ns && e.Reason == "Terminating" && strings.Contains(e.Message, `namespace "pr12-ends" is being deleted`) {
				told++
			}
		}
		return told == 3
	})
	if r.InSync.Status != tunnel.False || r.Healthy.Status != tunnel.False || !strings.Contains(r.InSync.Message, `namespace "pr12-ends" is being deleted`) {
		t.Errorf("in sync is %+v, healthy %+v", r.InSync, r.Healthy)
	}
	b.edit(configmaps, ns, "theirs", "somebody", `{"metadata":{"finalizers":null}}`)
	b.live(namespaces, "", ns, "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != before })
	for _, name := range []string{"a", "b"} {
		b.live(configmaps, ns, name, "made again", func(*unstructured.Unstructured) bool { return true })
	}
	b.applied(o)
}
