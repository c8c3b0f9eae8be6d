// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func answer(code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: details,
	}}
}

func TestErrorsFallIntoClasses(t *testing.T) {
	t.Parallel()
	namespaceGone := answer(404, metav1.StatusReasonNotFound, `namespaces "x" not found`, &metav1.StatusDetails{Kind: "namespaces", Name: "x"})
	denied := answer(403, metav1.StatusReasonForbidden, `admission webhook "w" denied the request: no`, nil)
	invalidField := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "s", field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "no")})
	for name, c := range map[string]struct {
		err    error
		around surroundings
		want   class
	}{
		"no answer":                                {err: fmt.Errorf("dial: %w", context.DeadlineExceeded), want: cannotTell},
		"an unknown kind":                          {err: fmt.Errorf("x: %w", errUnknownKind), want: rejected},
		"a kind that the render brings":            {err: fmt.Errorf("x: %w", errUnknownKind), around: surroundings{bringsKind: true}, want: deferred},
		"a missing namespace":                      {err: namespaceGone, want: rejected},
		"a namespace that the render brings":       {err: namespaceGone, around: surroundings{bringsNamespace: true, madeNamespace: true}, want: deferred},
		"the order's namespace":                    {err: namespaceGone, around: surroundings{madeNamespace: true}, want: noNamespace},
		"a namespace that is being deleted":        {err: answer(403, metav1.StatusReasonForbidden, "", &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: causeTerminating}}}), want: cannotTell},
		"forbidden":                                {err: answer(403, metav1.StatusReasonForbidden, "no", nil), want: rejected},
		"denied by a webhook":                      {err: denied, want: rejected},
		"denied by a webhook that will change":     {err: denied, around: surroundings{bringsWebhook: true}, want: deferred},
		"invalid":                                  {err: invalidField, want: invalid},
		"invalid, but its definition will change":  {err: invalidField, around: surroundings{bringsKind: true}, want: deferred},
		"it exists although it was to be made":     {err: answer(422, metav1.StatusReasonInvalid, "", &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: createOnlyField}}}), want: raced},
		"it changed meanwhile":                     {err: answer(409, metav1.StatusReasonConflict, "", nil), want: raced},
		"fields of others":                         {err: conflictError409(cause(".data.k", `conflict with "x"`)), want: conflicting},
		"too many requests":                        {err: answer(429, metav1.StatusReasonTooManyRequests, "", nil), want: cannotTell},
		"a webhook that is away":                   {err: answer(500, metav1.StatusReasonInternalError, `failed calling webhook "w"`, nil), want: cannotTell},
		"a server that is away":                    {err: answer(503, metav1.StatusReasonServiceUnavailable, "", nil), want: cannotTell},
		"a doubled list key, which is told as 500": {err: answer(500, metav1.StatusReasonInternalError, "failed to create typed patch object (x): duplicate entries", nil), want: rejected},
		"a field that a schema lacks, as 500":      {err: answer(500, metav1.StatusReasonInternalError, "failed to prune fields: .spec.b: field not declared in schema", nil), want: rejected},
		"a value that is no base64, as 500":        {err: answer(500, metav1.StatusReasonInternalError, "failed to convert new object: error decoding from json: illegal base64 data at input byte 4", nil), want: rejected},
		"a conversion webhook that is away":        {err: answer(500, metav1.StatusReasonInternalError, "failed to convert new object: conversion webhook for x failed: dial tcp: refused", nil), want: cannotTell},
		"a webhook without dry run":                {err: answer(400, metav1.StatusReasonBadRequest, `admission webhook "w" does not support dry run`, nil), around: surroundings{dry: true}, want: cannotTell},
		"a bad request":                            {err: answer(400, metav1.StatusReasonBadRequest, "unknown field", nil), around: surroundings{dry: true}, want: rejected},
		"too large":                                {err: answer(413, metav1.StatusReasonRequestEntityTooLarge, "", nil), want: rejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(c.err, c.around); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestOnlyWhatTheServerCallsUnchangeableIsEverReplaced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"spec.selector: Invalid value: x: field is immutable":                                            true,
		"spec.clusterIP: Invalid value: may not change once set":                                         true,
		"spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden":    true,
		"spec.ports: Required value":                                                                     false,
		"ValidatingAdmissionPolicy 'p' with binding 'b' denied request: this field is immutable for you": false,
		`admission webhook "w" denied the request: immutable`:                                            false,
	} {
		if got := saysUnchangeable(answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, text, nil)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if saysUnchangeable(errors.New("immutable")) {
		t.Error("an error that is no answer was taken for one")
	}
}

func TestMessagesAreShortAndHoldNoSecretValue(t *testing.T) {
	t.Parallel()
	value := "c3dvcmRmaXNo"
	err := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{
		field.Invalid(field.NewPath("data").Key("password"), value, "bad: "+value),
		field.Invalid(field.NewPath("type"), value, "field is immutable"),
	})
	if got, want := explain(err, true), `data[password]: FieldValueInvalid; type: field is immutable`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := explain(answer(403, metav1.StatusReasonForbidden, "no "+value, nil), true); strings.Contains(got, value) {
		t.Errorf("got %q", got)
	}
	long := apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "j", field.ErrorList{
		field.Invalid(field.NewPath("spec", "template"), strings.Repeat("dump ", 10000), "field is immutable"),
	})
	if got := explain(long, false); got != "spec.template: field is immutable" {
		t.Errorf("got %q", got)
	}
	if got := explain(errors.New(strings.Repeat("ü", 1000)), false); len(got) > maxMessage || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes", len(got))
	}
}
