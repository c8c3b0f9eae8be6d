// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/pkg/health"
)

// TestHealthCases are the cases HL-01, HL-03, HL-04, HL-06 and HL-07: each object gets the
// verdict that the case gives it.
func TestHealthCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../e2e/testdata/cases/HL-*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("found %d cases, want 5 (%v)", len(files), err)
	}
	for _, file := range files {
		id := filepath.Base(file)[:5]
		for _, s := range steps(t, file) {
			t.Run(id+" "+s.name, func(t *testing.T) {
				t.Parallel()
				live := read(t, s.object)
				if got := health.Judge(live); got.State.Outcome().String() != s.expect {
					t.Errorf("judged %s (%q), want %s", got.State, got.Message, s.expect)
				}
			})
		}
	}
}

// TestHealthCasesOfControllers are the cases HL-20 to HL-30: objects as controllers of many
// kinds and versions leave them. Where more than one verdict can be argued for, each does.
func TestHealthCasesOfControllers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/HL-*.yaml")
	if err != nil || len(files) != 11 {
		t.Fatalf("found %d cases, want 11 (%v)", len(files), err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for _, s := range steps(t, file) {
			t.Run(id+" "+s.name, func(t *testing.T) {
				t.Parallel()
				got := health.Judge(read(t, s.object))
				if !slices.Contains(strings.Split(s.expect, " or "), got.State.Outcome().String()) {
					t.Errorf("judged %s (%q), want %s", got.State, got.Message, s.expect)
				}
			})
		}
	}
}

// TestBuiltInKinds judges objects of the kinds that have a rule of their own, each in the
// shapes that their controllers give them, and in odd ones.
func TestBuiltInKinds(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		for _, s := range steps(t, file) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+" "+s.name, func(t *testing.T) {
				t.Parallel()
				check(t, s)
			})
		}
	}
}

// check judges the object of a step, twice: an answer is the same each time, and the
// object is what it was.
func check(t *testing.T, s step) {
	t.Helper()
	live := read(t, s.object)
	before := runtime.DeepCopyJSON(live)
	got := health.Judge(live)
	if got.State.String() != s.expect || !strings.Contains(got.Message, s.says) {
		t.Errorf("judged %s (%q), want %s that says %q", got.State, got.Message, s.expect, s.says)
	}
	if (got.State == health.Healthy) != (got.Message == "") {
		t.Errorf("judged %s with the message %q: only what is not healthy has one", got.State, got.Message)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	if again := health.Judge(live); again != got {
		t.Errorf("judged %v, then %v", got, again)
	}
}

// TestOddShapesAreNoPanic feeds every built-in kind with fields of the wrong type.
func TestOddShapesAreNoPanic(t *testing.T) {
	t.Parallel()
	odd := []any{nil, "text", int64(7), 1.5, true, []any{}, []any{nil, "x", int64(1), []any{}, map[string]any{}}, map[string]any{}, map[string]any{"a": nil}}
	fields := []string{
		"conditions", "phase", "observedGeneration", "replicas", "loadBalancer", "health", "parents", "ancestors", "bindings", "state",
		"containerStatuses", "operationState", "validationMessages", "error", "applied", "readyToUse", "nodeIds", "robustness", "printableStatus",
	}
	for _, kind := range health.Kinds() {
		version := kind.Group + "/v1"
		if kind.Group == "" {
			version = "v1"
		}
		for _, value := range odd {
			for _, live := range []map[string]any{
				{"status": value}, {"spec": value}, {"metadata": value}, {"metadata": map[string]any{"annotations": value, "generation": value}},
				{"spec": map[string]any{"replicas": value, "type": value, "service": value, "updateStrategy": value, "instances": value, "suspend": value}},
			} {
				judgeOdd(t, kind.Kind, version, live)
			}
			for _, field := range fields {
				judgeOdd(t, kind.Kind, version, map[string]any{"status": map[string]any{field: value}})
				judgeOdd(t, kind.Kind, version, map[string]any{"status": map[string]any{field: []any{value, map[string]any{"type": value, "status": value}}}})
			}
		}
	}
}

func judgeOdd(t *testing.T, kind, version string, live map[string]any) {
	t.Helper()
	live["kind"], live["apiVersion"] = kind, version
	if got := health.Judge(live); (got.State == health.Healthy) != (got.Message == "") {
		t.Errorf("%v is judged %s with the message %q", live, got.State, got.Message)
	}
}

func TestEveryStateHasAWordThatCanBeReadBack(t *testing.T) {
	t.Parallel()
	for state := health.Unknown; state <= health.Terminating; state++ {
		if got, ok := health.ParseState(state.String()); !ok || got != state {
			t.Errorf("%d is %q, read back as %d, %v", state, state, got, ok)
		}
	}
	if got, ok := health.ParseState("Fine"); ok || got != health.Unknown {
		t.Errorf("Fine is read as %v, %v", got, ok)
	}
}
