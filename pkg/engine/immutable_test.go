// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
