// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

// userKinds are the kinds that users write, with a manifest of each.
var userKinds = map[string]struct {
	resource schema.GroupVersionResource
	manifest map[string]any
	field    []string // one that another manager changes
	value    any
	owned    string // how the field looks in managedFields
}{
	"Cluster": {
		resource: schema.GroupVersionResource{Group: "core.convoy.kumodo.io", Version: "v1alpha1", Resource: "clusters"},
		manifest: map[string]any{"spec": map[string]any{"metadata": map[string]any{"region": "eu"}}},
		field:    []string{"spec", "metadata", "region"}, value: "us", owned: `"f:region"`,
	},
	"Release": {
		resource: schema.GroupVersionResource{Group: "core.convoy.kumodo.io", Version: "v1alpha1", Resource: "releases"},
		manifest: map[string]any{"spec": map[string]any{
			"clusterRef": map[string]any{"name": "edge-1"},
			"source":     map[string]any{"kind": "GitRepository", "name": "app"},
			"content":    map[string]any{"path": "deploy"},
		}},
		field: []string{"spec", "content", "path"}, value: "other", owned: `"f:path"`,
	},
	"GitRepository": {
		resource: schema.GroupVersionResource{Group: "source.convoy.kumodo.io", Version: "v1alpha1", Resource: "gitrepositories"},
		manifest: map[string]any{"spec": map[string]any{"url": "https://git.example/team/app.git"}},
		field:    []string{"spec", "url"}, value: "https://git.example/team/other.git", owned: `"f:url"`,
	},
	"HealthRuleSet": {
		resource: schema.GroupVersionResource{Group: "extensions.convoy.kumodo.io", Version: "v1alpha1", Resource: "healthrulesets"},
		manifest: map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"kind": "Queue", "healthy": "true"}}}},
		field:    []string{"spec", "rules"}, value: []any{map[string]any{"kind": "Queue", "healthy": "false"}}, owned: `"f:rules"`,
	},
}

func manifestOf(kind string) *unstructured.Unstructured {
	k := userKinds[kind]
	u := (&unstructured.Unstructured{Object: k.manifest}).DeepCopy()
	u.SetAPIVersion(k.resource.GroupVersion().String())
	u.SetKind(kind)
	u.SetNamespace("team")
	u.SetName("applied")
	return u
}

func dynamicClient(t *testing.T, s *apiservertest.Server) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(s.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func managersOf(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, f := range u.GetManagedFields() {
		out[f.Manager+"/"+string(f.Operation)+"/"+f.Subresource] = f.FieldsV1.GetRawString()
	}
	return out
}

func TestServerSideApplyWorksOnEveryKindThatUsersWrite(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := dynamicClient(t, s)
	for kind, k := range userKinds {
		t.Run(kind, func(t *testing.T) {
			r := c.Resource(k.resource).Namespace("team")
			applied, err := r.Apply(t.Context(), "applied", manifestOf(kind), metav1.ApplyOptions{FieldManager: "alice"})
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			managers := managersOf(applied)
			if owned := managers["alice/Apply/"]; !strings.Contains(owned, k.owned) {
				t.Fatalf("managedFields %v: alice does not own %s", managers, k.owned)
			}
			if owned := managers["alice/Apply/"]; strings.Contains(owned, "f:status") || strings.Contains(owned, "convoy.kumodo.io/shard") {
				t.Errorf("alice owns what she cannot set: %s", owned)
			}

			again, err := r.Apply(t.Context(), "applied", manifestOf(kind), metav1.ApplyOptions{FieldManager: "alice"})
			if err != nil {
				t.Fatalf("apply again: %v", err)
			}
			if again.GetResourceVersion() != applied.GetResourceVersion() {
				t.Error("applying the same again wrote to etcd")
			}

			other := manifestOf(kind)
			if err := unstructured.SetNestedField(other.Object, k.value, k.field...); err != nil {
				t.Fatal(err)
			}
			_, err = r.Apply(t.Context(), "applied", other, metav1.ApplyOptions{FieldManager: "bob"})
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "alice") {
				t.Errorf("bob's apply gave %v, want a conflict that names alice", err)
			}
			forced, err := r.Apply(t.Context(), "applied", other, metav1.ApplyOptions{FieldManager: "bob", Force: true})
			if err != nil {
				t.Fatalf("forced apply: %v", err)
			}
			if owned := managersOf(forced)["alice/Apply/"]; strings.Contains(owned, k.owned) {
				t.Errorf("alice still owns what bob took: %s", owned)
			}
			if forced.GetGeneration() != applied.GetGeneration()+1 {
				t.Errorf("generation %d after a change of the spec, want %d", forced.GetGeneration(), applied.GetGeneration()+1)
			}
		})
	}
}

func TestManagedFieldsAreKeptForEveryKindOfWrite(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := dynamicClient(t, s)
	for kind, k := range userKinds {
		t.Run(kind, func(t *testing.T) {
			r := c.Resource(k.resource).Namespace("team")
			created, err := r.Create(t.Context(), manifestOf(kind), metav1.CreateOptions{FieldManager: "creator"})
			if err != nil {
				t.Fatal(err)
			}
			if owned := managersOf(created)["creator/Update/"]; !strings.Contains(owned, k.owned) {
				t.Errorf("create: managedFields %v do not hold %s", managersOf(created), k.owned)
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
			if err != nil {
				t.Fatal(err)
			}
			patched, err := r.Patch(t.Context(), "applied", "application/merge-patch+json", patch, metav1.PatchOptions{FieldManager: "patcher"})
			if err != nil {
				t.Fatal(err)
			}
			if owned := managersOf(patched)["patcher/Update/"]; !strings.Contains(owned, `"f:a"`) {
				t.Errorf("patch: managedFields %v do not hold the label", managersOf(patched))
			}
			status := manifestOf(kind)
			status.Object["status"] = map[string]any{"observedGeneration": int64(1)}
			delete(status.Object, "spec")
			written, err := r.ApplyStatus(t.Context(), "applied", status, metav1.ApplyOptions{FieldManager: "writer"})
			if err != nil {
				t.Fatalf("apply status: %v", err)
			}
			if owned := managersOf(written)["writer/Apply/status"]; !strings.Contains(owned, `"f:observedGeneration"`) || strings.Contains(owned, "f:spec") {
				t.Errorf("status: managedFields %v", managersOf(written))
			}
		})
	}
}

func TestAStrategicMergePatchWorks(t *testing.T) {
	t.Parallel()
	// kubectl edit and kubectl apply send it for kinds whose openapi they know.
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newRelease("team", "r", "edge"))
	a := raw(t, s, http.MethodPatch, corePath+"/namespaces/team/releases/r", `{"spec":{"content":{"path":"x"}}}`, "Content-Type", "application/strategic-merge-patch+json")
	if a.code != http.StatusOK || !strings.Contains(a.body, `"path":"x"`) {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := dynamicClient(t, s)
	for kind, k := range userKinds {
		t.Run(kind, func(t *testing.T) {
			r := c.Resource(k.resource).Namespace("team")
			if _, err := r.Apply(t.Context(), "applied", manifestOf(kind), metav1.ApplyOptions{FieldManager: "alice", DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Get(t.Context(), "applied", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("after a dry run: %v, want NotFound", err)
			}
		})
	}
}
