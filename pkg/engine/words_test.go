// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWhereAServerRepeatsASealedValueOnlyFieldsAreNamed(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "s", field.ErrorList{field.Invalid(field.NewPath("spec", "externalName"), "hunter \"2\"", "no host")})
	if got := explain(hiding(invalid, map[string]string{"/spec/x": "other"}), false); !strings.Contains(got, "no host") {
		t.Errorf("got %q", got)
	}
	got := explain(&compareError{hiding(invalid, map[string]string{"/spec/externalName": "hunter \"2\""})}, false)
	if got != "spec.externalName: FieldValueInvalid" {
		t.Errorf("got %q", got)
	}
}

func TestSS09WhatTheServerCannotReadIsToldInPlainWordsWithoutAnyValue(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"failed to create typed patch object (t/typo; apps/v1, Kind=Deployment): .spec.replcias: field not declared in schema": "spec.replcias: no such field in the schema",
		"failed to create typed patch object (t/types; apps/v1, Kind=Deployment): errors:\n  .spec.template.spec.containers[name=\"c\"].env[name=\"A\"].value: expected string, got &value.valueUnstructured{Value:1}\n  .spec.replicas: expected numeric (int or float), got string\n": "spec.replicas: must be a number, is text; " +
			"spec.template.spec.containers[name=\"c\"].env[name=\"A\"].value: must be text, is a number: quote it where text is meant",
		`failed to create typed patch object (t/x; v1, Kind=Pod): .spec.hostNetwork: expected boolean, got &value.valueUnstructured{Value:"hunter2}"}`:                                                              "spec.hostNetwork: must be true or false, is text",
		`failed to create typed patch object (t/p; policy/v1, Kind=PodDisruptionBudget): .spec.selector.matchLabels.app: expected string, got &value.valueUnstructured{Value:false}`:                                "spec.selector.matchLabels.app: must be text, is true or false: quote it where text is meant",
		`failed to create typed patch object (t/p; v1, Kind=Pod): .spec.nodeSelector: expected map, got &{[hunter2]}`:                                                                                               "spec.nodeSelector: must be a map, is something else",
		`failed to create typed patch object (t/dup; /v1, Kind=Service): .spec.ports: duplicate entries for key [port=80,protocol="TCP"]`:                                                                           `spec.ports: two entries of the same key [port=80,protocol="TCP"]`,
		"failed to prune fields: failed to convert merged object to last applied version: .spec.b: field not declared in schema":                                                                                    "spec.b: no such field in the schema",
		"failed to convert new object (t/text; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured object to /v1, Kind=ConfigMap: error decoding from json: illegal base64 data at input byte 4": "a value that has to be base64 is not",
		"json: cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type string":                                                                                                         "metadata.annotations: must be text, is a number",
		"json: cannot unmarshal string into Go value of type v1.Thing":                                                                                                                                              "a value: must be a map, is text",
		`Service in version "v1" cannot be handled as a Service: json: cannot unmarshal string into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort`:                                                "spec.ports: must be a list, is text",
		`strict decoding error: unknown field "spec.typo", unknown field "spec.more"`:                                                                                                                               "spec.more: no such field in the schema; spec.typo: no such field in the schema",
		`services "x" is forbidden: User "y" cannot patch`:                                                                                                                                                          `services "x" is forbidden: User "y" cannot patch`,
		`something new: got &value.valueUnstructured{Value:"hunter2"}`:                                                                                                                                              `something new: got a value`,
	} {
		if got := explain(answer(500, metav1.StatusReasonInternalError, message, nil), false); got != want {
			t.Errorf("of %s:\n got %s\nwant %s", message, got, want)
		}
		if got := explain(answer(500, metav1.StatusReasonInternalError, message, nil), true); strings.Contains(got, "hunter2") {
			t.Errorf("a Secret's value is in %s", got)
		}
	}
}
