// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func TestTheViewKnowsEveryObjectOfTheApplicationAndItsWave(t *testing.T) {
	content, err := files()
	if err != nil {
		t.Fatal(err)
	}
	var committed []string
	for path, text := range content {
		if !strings.HasPrefix(path, "deploy/") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			wave, err := strconv.Atoi(cmp.Or(object.GetAnnotations()[corev1alpha1.AnnotationSyncWave], "0"))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			committed = append(committed, fmt.Sprintf("%d %s %s/%s", wave, object.GetKind(), object.GetNamespace(), object.GetName()))
		}
	}
	var known []string
	for _, one := range parts {
		known = append(known, fmt.Sprintf("%d %s %s/%s", one.wave, one.kind, one.namespace, one.name))
	}
	slices.Sort(committed)
	slices.Sort(known)
	if diff := gocmp.Diff(committed, known); diff != "" {
		t.Errorf("objects (-committed +known to the view):\n%s", diff)
	}
	if !strings.Contains(content["deploy/20-web.yaml"], "greeting: "+greeting) {
		t.Errorf("the ConfigMap does not say %q", greeting)
	}
}

func TestSummaryOfAReleaseReadsLikeItsStory(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"new": {nil, "created"},
		"on its way": {
			[]metav1.Condition{
				condition("Ready", "Unknown", "Progressing", "x"), condition("Applied", "Unknown", "Progressing", "wave 1"),
				condition("Rendered", "True", "Rendered", ""),
			},
			"Rendered (Progressing: wave 1)",
		},
		"done": {
			[]metav1.Condition{
				condition("Rendered", "True", "", ""), condition("Applied", "True", "", ""), condition("InSync", "True", "", ""),
				condition("Healthy", "True", "", ""), condition("Ready", "True", "", ""),
			},
			"Rendered Applied InSync Healthy Ready",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			release := &corev1alpha1.Release{Status: corev1alpha1.ReleaseStatus{Conditions: test.conditions}}
			if got := summary(release); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
