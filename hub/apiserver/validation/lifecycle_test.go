// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func aHook(change ...func(*v1alpha1.Hook)) v1alpha1.Hook {
	h := v1alpha1.Hook{Name: "migrate", Phases: []v1alpha1.HookPhase{v1alpha1.HookPreSync}}
	h.Object.Raw = []byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate-{{ .cluster.name }}"}}`)
	for _, f := range change {
		f(&h)
	}
	return h
}

func TestHooksOfARelease(t *testing.T) {
	object := func(text string) func(*v1alpha1.Hook) {
		return func(h *v1alpha1.Hook) { h.Object.Raw = []byte(text) }
	}
	annotated := func(key string) func(*v1alpha1.Hook) {
		return object(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"` + key + `":"x"}}}`)
	}
	at := func(fields ...string) []string {
		for i, f := range fields {
			fields[i] = "spec.lifecycle.hooks[0]." + f
		}
		return fields
	}
	tests := []struct {
		name   string
		change func(*v1alpha1.Hook)
		want   []string
	}{
		{"the smallest one is good", func(*v1alpha1.Hook) {}, nil},
		{"one with all there is", func(h *v1alpha1.Hook) {
			h.Phases = []v1alpha1.HookPhase{v1alpha1.HookPostSync, v1alpha1.HookSyncFailed, v1alpha1.HookPreDelete, v1alpha1.HookPostDelete}
			h.Wave, h.Timeout = -3, &metav1.Duration{Duration: time.Minute}
			h.DeletePolicy = []v1alpha1.HookDeletePolicy{v1alpha1.HookSucceeded, v1alpha1.HookFailed}
		}, nil},
		{"no name", func(h *v1alpha1.Hook) { h.Name = "" }, at("name")},
		{"a name that is no label", func(h *v1alpha1.Hook) { h.Name = "a/b" }, at("name")},
		{"no phase", func(h *v1alpha1.Hook) { h.Phases = nil }, at("phases")},
		{"a phase that there is not", func(h *v1alpha1.Hook) { h.Phases = []v1alpha1.HookPhase{"PreInstall"} }, at("phases[0]")},
		{"a phase twice", func(h *v1alpha1.Hook) { h.Phases = []v1alpha1.HookPhase{"PreSync", "PreSync"} }, at("phases[1]")},
		{"a policy that there is not", func(h *v1alpha1.Hook) { h.DeletePolicy = []v1alpha1.HookDeletePolicy{"Never"} }, at("deletePolicy[0]")},
		{"a policy twice", func(h *v1alpha1.Hook) { h.DeletePolicy = []v1alpha1.HookDeletePolicy{"HookFailed", "HookFailed"} }, at("deletePolicy[1]")},
		{"a timeout of nothing", func(h *v1alpha1.Hook) { h.Timeout = &metav1.Duration{} }, at("timeout")},
		{"a timeout of a second and a half", func(h *v1alpha1.Hook) { h.Timeout = &metav1.Duration{Duration: 1500 * time.Millisecond} }, at("timeout")},
		{"no object", object(""), at("object")},
		{"an object that is a list", object("[]"), at("object")},
		{"an object that is text", object(`"hello"`), at("object")},
		{"metadata that are text", object(`{"apiVersion":"v1","kind":"Pod","metadata":"a"}`), at("object.metadata")},
		{"labels and annotations that are none", object(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":[],"annotations":1}}`), at("object.metadata.labels", "object.metadata.annotations")},
		{"a kind that is a list of objects", object(`{"apiVersion":"v1","kind":"List","metadata":{"name":"a"},"items":[]}`), at("object.kind")},
		{"a list of one kind", object(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"name":"a"}}`), at("object.kind")},
		{"an object without all that it needs", object("{}"), at("object.apiVersion", "object.kind", "object.metadata.name")},
		{"an apiVersion that is a number", object(`{"apiVersion":1,"kind":"Pod","metadata":{"name":"a"}}`), at("object.apiVersion")},
		{"a kind that is a template", object(`{"apiVersion":"v1","kind":"{{ .cluster.kind }}","metadata":{"name":"a"}}`), at("object.kind")},
		{"a generated name", object(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}`), at("object.metadata.name", "object.metadata.generateName")},
		{"an owner", annotated("convoy.kumodo.io/owner"), at("object.metadata.annotations[convoy.kumodo.io/owner]")},
		{"a label that convoy writes", object(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"convoy.kumodo.io/managed":"true"}}}`), at("object.metadata.labels[convoy.kumodo.io/managed]")},
		{"an annotation of a hook", annotated("convoy.kumodo.io/hook"), at("object.metadata.annotations[convoy.kumodo.io/hook]")},
		{"an annotation of a hook of Helm", annotated("helm.sh/hook-weight"), at("object.metadata.annotations[helm.sh/hook-weight]")},
		{"an annotation of a hook of Argo CD", annotated("argocd.argoproj.io/hook"), at("object.metadata.annotations[argocd.argoproj.io/hook]")},
		{"an annotation that keeps it", annotated("helm.sh/resource-policy"), nil},
		{"an object that is a book", object(`{"a":"` + strings.Repeat("x", MaxHookObject) + `"}`), at("object")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := release()
			r.Spec.Lifecycle.Hooks = []v1alpha1.Hook{aHook(test.change)}
			check(t, Release(r), test.want...)
		})
	}
}

func TestHooksTogether(t *testing.T) {
	r := release()
	r.Spec.Lifecycle.Hooks = []v1alpha1.Hook{aHook(), aHook()}
	check(t, Release(r), "spec.lifecycle.hooks[1].name")
	r.Spec.Lifecycle.Hooks = nil
	for i := range MaxHooks + 1 {
		r.Spec.Lifecycle.Hooks = append(r.Spec.Lifecycle.Hooks, aHook(func(h *v1alpha1.Hook) { h.Name = fmt.Sprintf("h-%d", i) }))
	}
	check(t, Release(r), "spec.lifecycle.hooks")
}

func TestRequestsAboutHooks(t *testing.T) {
	good := v1alpha1.HookRequest{Hook: "Job/shop/migrate", Run: "7-1", Action: v1alpha1.HookRetry}
	tests := []struct {
		name string
		in   v1alpha1.ReleaseLifecycle
		want []string
	}{
		{"a retry", v1alpha1.ReleaseLifecycle{Request: &good}, nil},
		{"nothing", v1alpha1.ReleaseLifecycle{}, []string{"request"}},
		{"nothing of all", v1alpha1.ReleaseLifecycle{Request: &v1alpha1.HookRequest{}}, []string{"request.hook", "request.run", "request.action"}},
		{"another Release's", v1alpha1.ReleaseLifecycle{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Request: &good}, []string{"metadata.name"}},
		{"hooks beside", v1alpha1.ReleaseLifecycle{Request: &good, Spec: v1alpha1.Lifecycle{Hooks: []v1alpha1.Hook{aHook()}}}, []string{"spec"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, HookRequest(&test.in, "shop"), test.want...) })
	}
	check(t, ReleaseLifecycle(&v1alpha1.ReleaseLifecycle{Request: &good}, "shop"), "request")
}

// release is the smallest one that is good.
func release() *v1alpha1.Release {
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	r.Spec.ClusterRef.Name = "edge-1"
	r.Spec.Source = v1alpha1.SourceReference{Kind: "GitRepository", Name: "app"}
	v1alpha1.SetReleaseDefaults(r)
	return r
}

func TestAnObjectOfAHookThatIsNoneIsNamedInPlainWords(t *testing.T) {
	for raw, want := range map[string]string{
		`"hello"`:             "spec.lifecycle.hooks[0].object: Invalid value: must be an object",
		`{"metadata":"home"}`: "spec.lifecycle.hooks[0].object.metadata: Invalid value: must be an object",
	} {
		r := release()
		r.Spec.Lifecycle.Hooks = []v1alpha1.Hook{aHook(func(h *v1alpha1.Hook) { h.Object.Raw = []byte(raw) })}
		if got := Release(r).ToAggregate().Error(); got != want {
			t.Errorf("%s: %s\nwant %s", raw, got, want)
		}
	}
}
