// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPathOfTheServerReachesAValue(t *testing.T) {
	t.Parallel()
	object := parsed(t, `{"metadata":{"annotations":{"example.test/a.b":"x"},"finalizers":["f.test/x"]},
	 "spec":{"replicas":1,"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]},{"name":"d]\"q","image":"j"}],"args":["a","b"]}}`)
	for path, want := range map[string]bool{
		".spec.replicas":                       true,
		".spec.paused":                         false,
		`.spec.containers[name="c"].image`:     true,
		`.spec.containers[name="x"].image`:     false,
		`.spec.containers[name="c"].env`:       false,
		`.spec.containers[name="d]\"q"].image`: true,
		`.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort`: true,
		`.spec.containers[name="c"].ports[containerPort=81,protocol="TCP"].containerPort`: false,
		".metadata.annotations.example.test/a.b":                                          true,
		".metadata.annotations.example.test/a":                                            false,
		`.metadata.finalizers[="f.test/x"]`:                                               true,
		`.metadata.finalizers[="f.test/y"]`:                                               false,
		".spec.args[1]":                                                                   true,
		".spec.args[2]":                                                                   false,
		".spec.replicas.more":                                                             false,
		".spec.containers[name=":                                                          false,
		"":                                                                                true,
	} {
		if got := reaches(object, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func conflictError409(causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Details: &metav1.StatusDetails{Causes: causes},
	}}
}

func cause(field, message string) metav1.StatusCause {
	return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: message}
}

func TestConflictsAreForcedOnlyForFieldsAppliedBefore(t *testing.T) {
	t.Parallel()
	before := parsed(t, `{"data":{"ours":"v"}}`)
	none := func(string) bool { return false }
	err := conflictError409(
		cause(".data.ours", `conflict with "thief" using v1`),
		cause(".data.new", `conflict with "other \"x\"" using v1`),
	)
	conflicts := conflictsOf(err)
	if len(conflicts) != 2 {
		t.Fatalf("conflicts are %v", conflicts)
	}
	var got *conflictError
	if err := unforced(conflicts, before, none); !errors.As(err, &got) || got.Error() != `data.new managed by "other \"x\""` {
		t.Errorf("got %v", err)
	}
	if err := unforced(conflicts[:1], before, none); err != nil {
		t.Errorf("a field applied before: %v", err)
	}
	if err := unforced(conflicts[:1], nil, none); err == nil {
		t.Error("a field never applied was forced")
	}
	if err := unforced(conflicts[:1], nil, func(m string) bool { return m == "thief" }); err != nil {
		t.Errorf("a field that is taken over: %v", err)
	}
	if conflictsOf(conflictError409()) != nil || conflictsOf(errors.New("other")) != nil {
		t.Error("conflicts where there are none")
	}
}
