// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/pkg/manifest"
)

func TestTheNameOfAProbeIsOneThatEveryKindAllows(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web":                           "web-convoy-probe",
		strings.Repeat("a", 63):         strings.Repeat("a", 50) + "-convoy-probe",
		strings.Repeat("a", 49) + "-b":  strings.Repeat("a", 49) + "-convoy-probe",
		strings.Repeat("a", 48) + "..b": strings.Repeat("a", 48) + "-convoy-probe",
	} {
		if got := probeName(name); got != want || len(got) > 63 {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestTheFieldsOfAStatefulSetThatCannotChangeAreFound(t *testing.T) {
	t.Parallel()
	live := parsed(t, `{"spec":{"replicas":1,"serviceName":"db","podManagementPolicy":"OrderedReady","volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}],"template":{"a":1}}}`)
	for name, c := range map[string]struct {
		made string
		want []string
	}{
		"what may change":   {`{"spec":{"replicas":2,"serviceName":"db","podManagementPolicy":"OrderedReady","volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}],"template":{"a":2}}}`, nil},
		"a claim template":  {`{"spec":{"serviceName":"db","podManagementPolicy":"OrderedReady","volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}]}}`, []string{"spec.volumeClaimTemplates"}},
		"two of them":       {`{"spec":{"serviceName":"dbs","podManagementPolicy":"Parallel"}}`, []string{"spec.podManagementPolicy", "spec.serviceName"}},
		"an answer so odd":  {`{"spec":"text"}`, nil},
		"an answer without": {`{}`, nil},
	} {
		if diff := cmp.Diff(c.want, frozenFields(live, parsed(t, c.made))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheProbeOfAServiceDoesNotAskForWhatTheServiceHoldsItself(t *testing.T) {
	t.Parallel()
	id := manifest.Identity{Kind: "Service", Name: "web"}
	live := parsed(t, `{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"port":80,"nodePort":30080},{"port":81,"nodePort":30081}]}}`)
	for name, c := range map[string]struct{ content, want string }{
		"another address and the same port": {`{"spec":{"clusterIP":"10.0.0.2","ports":[{"port":80,"nodePort":30080}]}}`, `{"spec":{"clusterIP":"10.0.0.2","ports":[{"port":80}]}}`},
		"the same address":                  {`{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"]}}`, `{"spec":{}}`},
		"another port":                      {`{"spec":{"ports":[{"port":80,"nodePort":30090}]}}`, `{"spec":{"ports":[{"port":80,"nodePort":30090}]}}`},
		"no specification":                  {`{}`, `{}`},
	} {
		content := rendered(t, c.content)
		if diff := cmp.Diff(rendered(t, c.want), withoutHeld(id, content, live)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(rendered(t, c.content), content); diff != "" {
			t.Errorf("%s: the content changed (-want +got):\n%s", name, diff)
		}
	}
}

func TestAChangeIsOnlyUnchangeableIfNothingElseIsWrongWithIt(t *testing.T) {
	t.Parallel()
	scope := field.Invalid(field.NewPath("spec", "scope"), "Cluster", "field is immutable")
	other := field.Required(field.NewPath("spec", "names"), "")
	for name, c := range map[string]struct {
		list field.ErrorList
		want bool
	}{
		"a field that cannot change": {field.ErrorList{scope}, true},
		"and one that is missing":    {field.ErrorList{scope, other}, false},
		"one that is missing":        {field.ErrorList{other}, false},
	} {
		if got := onlyUnchangeable(apierrors.NewInvalid(schema.GroupKind{Kind: "K"}, "k", c.list)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestARefusalOfManyLinesBecomesOneSentence(t *testing.T) {
	t.Parallel()
	dump := "core.PersistentVolumeClaimSpec{\n  \tAccessModes: {\"ReadWriteOnce\"},\n+ \tx: y,\n  }\n"
	long := strings.Repeat("w", 200)
	for name, c := range map[string]struct{ message, want string }{
		"a dump in lines of its own":      {"Forbidden: spec is immutable after creation except resources.requests\n" + dump, "Forbidden: spec is immutable after creation except resources.requests"},
		"a dump that begins in the first": {"Invalid value: core.Spec{\n x: 1,\n}: field is immutable", "field is immutable"},
		"a dump that never ends":          {"Forbidden: may not be changed: core.Spec{\n x: 1", "Forbidden: may not be changed"},
		"one line":                        {"Invalid value: 1: field is immutable", "Invalid value: 1: field is immutable"},
		"one long line":                   {"Invalid value: " + long + ": field is immutable", "field is immutable"},
	} {
		if got := lastClause(c.message); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := explain(answer(403, metav1.StatusReasonForbidden, "denied:\n  one\n  two", nil), false); got != "denied: one two" {
		t.Errorf("got %q", got)
	}
}
