// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"kumodo.io/convoy/pkg/health"
)

// FuzzJudgeNeverPanics: whatever an object looks like, it is judged, and the same again.
func FuzzJudgeNeverPanics(f *testing.F) {
	for _, kind := range health.Kinds() {
		f.Add(kind.Group, kind.Kind, `{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"phase":"x","conditions":[{"type":"Ready","status":"False"}]}}`)
	}
	f.Add("x.test", "Thing", `{"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":1},{"type":"Synced"}]}}`)
	f.Fuzz(func(t *testing.T, group, kind, text string) {
		var live map[string]any
		if json.Unmarshal([]byte(text), &live) != nil || live == nil {
			t.Skip("no object")
		}
		live["apiVersion"], live["kind"] = group+"/v1", kind
		first := health.Judge(live)
		if again := health.Judge(live); again != first {
			t.Errorf("judged %v, then %v", first, again)
		}
		if len(first.Message) > 512 || (first.State == health.Healthy) != (first.Message == "") {
			t.Errorf("judged %s with a message of %d bytes", first.State, len(first.Message))
		}
	})
}
