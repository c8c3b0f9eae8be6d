// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// TestPR06AnEmptyRenderPrunesOnlyWithTheExplicitPermission plays the case.
func TestPR06AnEmptyRenderPrunesOnlyWithTheExplicitPermission(t *testing.T) {
	t.Parallel()
	p := play(t, "PR-06", 5*time.Minute)
	edge := p.targets[0]
	p.step("v1")
	config, claim := p.live(edge, "configmap", "one"), p.live(edge, "persistentvolumeclaim", "data")
	for _, step := range []struct{ name, reason string }{
		{"v2", corev1alpha1.ReasonEmptyRender},
		{"v3", corev1alpha1.ReasonEmptyRender},
		{"v4", corev1alpha1.ReasonPathNotFound},
		{"v5", corev1alpha1.ReasonEmptyRender},
	} {
		p.step(step.name)
		p.same(edge, config)
		p.same(edge, claim)
		p.is(edge, "r1", corev1alpha1.ConditionRendered, "False", step.reason)
		p.is(edge, "r1", corev1alpha1.ConditionReady, "False", step.reason)
		if got := p.status(edge, "r1").Status.Objects.Total; got != 2 {
			t.Errorf("after %s the Release counts %d objects, want the 2 that are kept", step.name, got)
		}
	}
	p.step("held-back", "allow", "emptied")
	p.gone(edge, "configmap", "one")
	p.gone(edge, "persistentvolumeclaim", "data")
	p.is(edge, "r1", corev1alpha1.ConditionInSync, "True", "")
	p.is(edge, "r1", corev1alpha1.ConditionReady, "True", "")
	if got := p.status(edge, "r1").Status.Objects; got != (corev1alpha1.ObjectCounts{}) {
		t.Errorf("the Release counts %+v, want no object", got)
	}
}

// TestPR07ObjectsWithCopiedLabelsAreNeitherPrunedNorReported plays the case.
func TestPR07ObjectsWithCopiedLabelsAreNeitherPrunedNorReported(t *testing.T) {
	t.Parallel()
	p := play(t, "PR-07", 5*time.Minute)
	edge := p.targets[0]
	slices := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	p.step("v1", "child")
	service, child := p.live(edge, "service", "svc"), p.live(edge, "configmap", "svc-child")
	for key, value := range service.GetLabels() {
		if child.GetLabels()[key] != value {
			t.Errorf("the child lacks label %s", key)
		}
	}
	for key, value := range service.GetAnnotations() {
		if child.GetAnnotations()[key] != value {
			t.Errorf("the child lacks annotation %s", key)
		}
	}
	if child.GetAnnotations()[corev1alpha1.AnnotationOwner] == "" {
		t.Error("the child does not carry the owner's mark: the case is not what it should be")
	}
	before, err := edge.cube.dynamic.Resource(slices).Namespace(p.c.Namespace()).List(p.ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=svc"})
	if err != nil || len(before.Items) == 0 {
		t.Fatalf("there is no EndpointSlice of svc: %v", err)
	}
	p.step("v2", "unharmed")
	p.same(edge, child)
	p.same(edge, service)
	after, err := edge.cube.dynamic.Resource(slices).Namespace(p.c.Namespace()).List(p.ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=svc"})
	if err != nil || len(after.Items) != len(before.Items) || after.Items[0].GetUID() != before.Items[0].GetUID() {
		t.Errorf("the EndpointSlices of svc are not those that were there: %d and %d, %v", len(before.Items), len(after.Items), err)
	}
	p.is(edge, "r1", corev1alpha1.ConditionInSync, "True", "")
	status := p.status(edge, "r1").Status
	if status.Objects.Total != 1 || len(status.Exceptions) != 0 {
		t.Errorf("the Release counts %+v with exceptions %+v, want one object", status.Objects, status.Exceptions)
	}
	p.step("delete", "after")
	p.gone(edge, "service", "svc")
	p.same(edge, child)
}
