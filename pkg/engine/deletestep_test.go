// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

func TestObjectsOfAWaveAreDeletedInSteps(t *testing.T) {
	type object struct {
		group, kind string
		held        bool
	}
	steps := [][]object{
		{{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", false}, {"admissionregistration.k8s.io", "MutatingWebhookConfiguration", true}},
		{{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", false}},
		{{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", false}},
		{
			{"example.test", "Box", false}, {"example.test", "Box", true}, {"networking.k8s.io", "Ingress", false}, {"", "Service", true}, {"", "ConfigMap", true},
			{"rbac.authorization.k8s.io", "RoleBinding", true}, {"apiregistration.k8s.io", "APIService", true}, {"coordination.k8s.io", "Lease", false},
		},
		{{"apps", "Deployment", true}, {"batch", "Job", true}, {"", "Pod", true}},
		{{"apps", "Deployment", false}, {"apps", "StatefulSet", false}, {"batch", "CronJob", false}, {"apiregistration.k8s.io", "APIService", false}, {"autoscaling", "HorizontalPodAutoscaler", false}},
		{{"", "Service", false}, {"rbac.authorization.k8s.io", "RoleBinding", false}},
		{{"rbac.authorization.k8s.io", "ClusterRoleBinding", false}, {"rbac.authorization.k8s.io", "Role", false}},
		{
			{"rbac.authorization.k8s.io", "ClusterRole", false}, {"", "ServiceAccount", false}, {"", "Secret", false}, {"", "ConfigMap", false},
			{"", "PersistentVolumeClaim", true}, {"", "PersistentVolume", true},
		},
		{{"apiextensions.k8s.io", "CustomResourceDefinition", true}, {"apiextensions.k8s.io", "CustomResourceDefinition", false}},
		{{"", "Namespace", true}, {"", "Namespace", false}},
	}
	got := map[object]int{}
	want := map[object]int{}
	last := 1 << 20
	for _, step := range steps {
		at := deleteStep(manifest.Identity{Group: step[0].group, Kind: step[0].kind}, step[0].held)
		if at >= last {
			t.Errorf("%+v is not deleted after the step before", step[0])
		}
		last = at
		for _, o := range step {
			want[o], got[o] = at, deleteStep(manifest.Identity{Group: o.group, Kind: o.kind}, o.held)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestOnlyFinalizersThatSomebodyElseLiftsHoldTheNextStep(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "foregroundDeletion": false, "orphan": false, "kubernetes.io/pvc-protection": false,
		"example.test/clean": true, "service.kubernetes.io/load-balancer-cleanup": true, "foregroundDeletion.example.test/x": true,
	} {
		live := map[string]any{"metadata": map[string]any{}}
		if name != "" {
			live["metadata"] = map[string]any{"finalizers": []any{"foregroundDeletion", name}}
		}
		if got := finalized(live); got != want {
			t.Errorf("finalizer %q holds: %v", name, got)
		}
	}
	if finalized(map[string]any{}) {
		t.Error("an object without metadata holds")
	}
}

func TestWhatBlocksADeletionIsNamed(t *testing.T) {
	box := func(name, why string, holds, later bool) *deletion {
		return &deletion{o: &object{id: manifest.Identity{Group: "example.test", Kind: "Box", Namespace: "a", Name: name}}, why: why, holds: holds, later: later}
	}
	for want, open := range map[string][]*deletion{
		"waiting for example.test/Box a/one to be gone: is being deleted":       {box("one", "is being deleted", false, false)},
		"waiting for example.test/Box a/two to be gone: held by x (and 1 more)": {box("one", "is being deleted", false, false), box("two", "held by x", true, false)},
		"waiting for example.test/Box a/one to be gone: held by x (and 1 more); 2 more are deleted after it": {
			box("one", "held by x", true, false), box("two", "held by x", true, false), box("three", "", false, true), box("four", "cannot tell", true, true),
		},
	} {
		if got := blocked(open); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
