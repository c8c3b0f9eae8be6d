// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// applied is a Deployment as the server gives it, with our entry in managedFields.
const applied = `{
 "apiVersion": "apps/v1", "kind": "Deployment",
 "metadata": {"name": "web", "uid": "u", "resourceVersion": "7", "labels": {"app": "web", "theirs": "x"},
  "managedFields": [
   {"manager": "convoy", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {
    "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"example.test/a\"": {}}},
    "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {},
     "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
     "f:resources": {"f:requests": {"f:cpu": {}}}}}}}}}},
   {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {"f:replicas": {}}}},
   {"manager": "somebody", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}, "f:spec": {"f:replicas": {}}}}
  ], "finalizers": ["example.test/a"]},
 "spec": {"replicas": 1, "template": {"spec": {"containers": [
  {"name": "other", "image": "o:1"},
  {"name": "c", "image": "a:1", "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "500m"}}}]}}},
 "status": {"replicas": 1}}`

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	object, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// at returns a map inside an object.
func at(t *testing.T, object map[string]any, path ...any) map[string]any {
	t.Helper()
	var v any = object
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no map at %v", path)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok {
				t.Fatalf("no list at %v", path)
			}
			v = l[p]
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("no map at %v", path)
	}
	return m
}

func TestProjection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, map[string]any)
		same   bool
		gone   bool
	}{
		"nothing changes": {change: func(*testing.T, map[string]any) {}, same: true},
		"the status changes": {same: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "status")["replicas"] = int64(5)
		}},
		"a field of somebody else changes": {same: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "metadata", "labels")["theirs"] = "y"
		}},
		"another container comes first": {same: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			spec := at(t, o, "spec", "template", "spec")
			list, ok := spec["containers"].([]any)
			if !ok {
				t.Fatal("no containers")
			}
			spec["containers"] = []any{list[1], list[0]}
		}},
		"the entry of somebody else changes": {same: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "metadata", "managedFields", 2)["manager"] = "other"
		}},
		"a number is spelt as a float": {same: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "spec")["replicas"] = float64(1)
		}},
		"a value of ours changes": {change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "spec", "template", "spec", "containers", 1)["image"] = "a:2"
		}},
		"a value of ours goes": {change: func(t *testing.T, o map[string]any) {
			t.Helper()
			delete(at(t, o, "metadata", "labels"), "app")
		}},
		"our container goes": {change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "spec", "template", "spec")["containers"] = []any{}
		}},
		"a finalizer of ours goes": {change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "metadata")["finalizers"] = []any{"example.test/b"}
		}},
		"a field of ours passes to somebody else, its value unchanged": {change: func(t *testing.T, o map[string]any) {
			t.Helper()
			delete(at(t, o, "metadata", "managedFields", 0, "fieldsV1", "f:spec"), "f:replicas")
		}},
		"managedFields is emptied": {gone: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			delete(at(t, o, "metadata"), "managedFields")
		}},
		"our entry became an update": {gone: true, change: func(t *testing.T, o map[string]any) {
			t.Helper()
			at(t, o, "metadata", "managedFields", 0)["operation"] = "Update"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, ok := project(parsed(t, applied), spared{})
			if !ok {
				t.Fatal("no projection")
			}
			object := parsed(t, applied)
			c.change(t, object)
			after, ok := project(object, spared{})
			if ok == c.gone {
				t.Fatalf("our entry is there: %v", ok)
			}
			if !c.gone && (before == after) != c.same {
				t.Errorf("equal: %v, want %v", before == after, c.same)
			}
		})
	}
}

func TestAProjectionSurvivesBeingWrittenDown(t *testing.T) {
	t.Parallel()
	p, _ := project(parsed(t, applied), spared{})
	if got, ok := parseProjection(p.String()); !ok || got != p {
		t.Errorf("came back as %v, %v", got, ok)
	}
	for _, bad := range []string{"", "x", "AAAA", p.String() + "AA"} {
		if _, ok := parseProjection(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestChangesNameFieldsAndManagersAndSeeEqualAmounts(t *testing.T) {
	t.Parallel()
	live, want := parsed(t, applied), parsed(t, applied)
	at(t, live, "spec")["replicas"] = int64(3)
	container := at(t, live, "spec", "template", "spec", "containers", 1)
	container["image"] = "a:2"
	at(t, container, "resources", "requests")["cpu"] = "0.5"
	delete(at(t, live, "metadata", "labels"), "app")
	var got []string
	for _, c := range changes(live, want, spared{}) {
		got = append(got, c.path+" by "+c.managed)
	}
	if diff := cmp.Diff([]string{
		"metadata.labels.app by ",
		"spec.replicas by somebody",
		`spec.template.spec.containers[{"name":"c"}].image by `,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
