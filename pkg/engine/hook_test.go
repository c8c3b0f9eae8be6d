// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatAnnotationsSayOfAHook(t *testing.T) {
	t.Parallel()
	type said struct {
		Phases                   string
		Before, Success, Failure bool
		Keep                     bool
		Timeout                  time.Duration
	}
	for name, c := range map[string]struct {
		kind        string
		annotations map[string]string
		want        *said // nil: no hook
		err         string
	}{
		"nothing":                            {"Job", nil, nil, ""},
		"a phase":                            {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync"}, &said{Phases: "PreSync", Before: true}, ""},
		"several phases, and room":           {"Job", map[string]string{v1alpha1.AnnotationHook: " PostSync , PreDelete,"}, &said{Phases: "PostSync PreDelete", Before: true}, ""},
		"a policy in place of the usual one": {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookDeletePolicy: "HookSucceeded,HookFailed"}, &said{Phases: "PreSync", Success: true, Failure: true}, ""},
		"a timeout":                          {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookTimeout: "90"}, &said{Phases: "PreSync", Before: true, Timeout: 90 * time.Second}, ""},
		"to be kept, as Helm says it":        {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", annotationKeep: keepValue}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"to be kept, as we say it":           {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationPrune: "false"}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"data that would go":                 {kindClaim, map[string]string{v1alpha1.AnnotationHook: "PreSync"}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"others' objects that would go":      {kindNamespace, map[string]string{v1alpha1.AnnotationHook: "PreSync"}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"a phase that there is not":          {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync,MidSync"}, nil, "MidSync"},
		"an empty list":                      {"Job", map[string]string{v1alpha1.AnnotationHook: " , "}, nil, "names no phase"},
		"a policy that there is not":         {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookDeletePolicy: "Never"}, nil, "Never"},
		"a timeout that is no number":        {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookTimeout: "5m"}, nil, "no number of seconds"},
		"a timeout of nothing":               {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookTimeout: "0"}, nil, "no number of seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := item{id: manifest.Identity{Kind: c.kind, Namespace: "ns", Name: "n"}}
			if c.kind == "Job" {
				it.id.Group = "batch"
			}
			h, err := newHook(it, c.annotations)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one that says %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got *said
			if h != nil {
				var phases []string
				for phase := range h.phases {
					phases = append(phases, phase)
				}
				slices.Sort(phases)
				got = &said{strings.Join(phases, " "), h.before, h.onSuccess, h.onFailure, h.keep, h.timeout}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhasesOfAnInstallationAndOfAnUpgradeAreTheOnesAroundASync(t *testing.T) {
	t.Parallel()
	h := &hook{phases: map[string]bool{phasePreInstall: true, phasePostUpgrade: true, phaseSyncFailed: true}}
	for phase, want := range map[string][2]bool{ // on an installation, on an upgrade
		phasePreSync: {true, false}, phasePostSync: {false, true}, phaseSyncFailed: {true, true},
		phasePreDelete: {false, false}, phasePostDelete: {false, false},
	} {
		if got := [2]bool{h.runsIn(phase, false), h.runsIn(phase, true)}; got != want {
			t.Errorf("%s: %v, want %v", phase, got, want)
		}
	}
}

func TestHooksDoNotRaiseTheBudgetOfDeletions(t *testing.T) {
	t.Parallel()
	r, _ := hooking(t)
	r.applied = &Render{Objects: tunnel.Layer{Digest: "sha256:01"}, Hooks: true, Items: 12}
	if total := r.lastTotal(t.Context()); total != 12 {
		t.Errorf("the share is taken of %d objects", total)
	}
}

func TestMessagesOfHooksNameHookAndObject(t *testing.T) {
	t.Parallel()
	id := manifest.Identity{Group: "batch", Kind: "Job", Namespace: "ns", Name: "prepare"}
	for want, err := range map[string]error{
		"PreSync hook batch/Job ns/prepare failed: Why; nothing of the render was applied":          newHookError(&HookRun{Identity: id, Hook: hookName(id), Phase: phasePreSync, State: runFailed, Message: "Why"}),
		"PreDelete hook backup (batch/Job ns/prepare) was ended: aborted: Why; nothing was deleted": newHookError(&HookRun{Identity: id, Hook: "backup", Phase: phasePreDelete, State: runAborted, Message: "aborted: Why"}),
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	}
	if isAborted(fmt.Errorf("x: %w", newHookError(&HookRun{State: runFailed}))) || !isAborted(fmt.Errorf("x: %w", newHookError(&HookRun{State: runAborted}))) {
		t.Error("what was aborted is not told from what failed")
	}
}
