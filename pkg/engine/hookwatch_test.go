// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"kumodo.io/convoy/pkg/manifest"
)

func TestHooksOfOneKindEndAndOthersAreHealthy(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	r := rn.newRelease("r")
	condition := func(kind string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "reason": "Why", "message": "how"}}}}
	}
	job, pod, other := manifest.Identity{Group: "batch", Kind: "Job"}, manifest.Identity{Kind: "Pod"}, manifest.Identity{Kind: "ConfigMap"}
	for name, c := range map[string]struct {
		id   manifest.Identity
		live map[string]any
		want outcome
		why  string
	}{
		"a Job that is new":           {job, map[string]any{}, outcomeOpen, "has not ended, 0 pods active"},
		"a Job that works":            {job, map[string]any{"status": map[string]any{"active": int64(2)}}, outcomeOpen, "has not ended, 2 pods active"},
		"a Job that is complete":      {job, condition("Complete"), outcomeDone, ""},
		"a Job about to be complete":  {job, condition("SuccessCriteriaMet"), outcomeOpen, "has not ended, 0 pods active"},
		"a Job that failed":           {job, condition("Failed"), outcomeFailed, "Why: how"},
		"a Job that waits":            {job, condition("Suspended"), outcomeOpen, "has not ended, 0 pods active"},
		"a Job of an odd shape":       {job, map[string]any{"status": map[string]any{"conditions": "none"}}, outcomeOpen, "its conditions cannot be read"},
		"a Pod that runs":             {pod, map[string]any{"status": map[string]any{"phase": "Running"}}, outcomeOpen, "has not ended, its phase is Running"},
		"a Pod that has ended well":   {pod, map[string]any{"status": map[string]any{"phase": "Succeeded"}}, outcomeDone, ""},
		"a Pod that has ended badly":  {pod, map[string]any{"status": map[string]any{"phase": "Failed", "reason": "Evicted"}}, outcomeFailed, "Evicted"},
		"a Pod that is new":           {pod, map[string]any{}, outcomeOpen, "has not begun"},
		"an object without a status":  {other, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}, outcomeDone, ""},
		"an object on its way out":    {other, map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-02T03:04:05Z"}}, outcomeOpen, "is being deleted"},
		"a Pod whose phase is no one": {pod, map[string]any{"status": map[string]any{"phase": 3}}, outcomeOpen, "has not ended, its phase is "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why, _ := r.outcomeOf(c.id, c.live)
			if got != c.want || why != c.why {
				t.Errorf("%d %q, want %d %q", got, why, c.want, c.why)
			}
		})
	}
}

func TestAHookIsNotFailedByWhatMayBeAMoments(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(after time.Duration) time.Time { return start.Add(after) }
	type seen struct {
		after   time.Duration
		outcome outcome
		grace   time.Duration // 0: its kind needs none
	}
	for name, c := range map[string]struct {
		seen []seen
		want map[time.Duration]outcome
	}{
		"degraded for a moment": {
			[]seen{{after: 0, outcome: outcomeDoubtful}, {after: 3 * time.Second, outcome: outcomeOpen}},
			map[time.Duration]outcome{degradedAfter: outcomeOpen, time.Hour: outcomeOpen},
		},
		"degraded again and again, each time for a moment": {
			[]seen{{after: 0, outcome: outcomeDoubtful}, {after: 3 * time.Second, outcome: outcomeOpen}, {after: 4 * time.Second, outcome: outcomeDoubtful}},
			map[time.Duration]outcome{degradedAfter: outcomeOpen, 4*time.Second + degradedAfter: outcomeFailed},
		},
		"degraded until it is healthy": {
			[]seen{{after: 0, outcome: outcomeDoubtful}, {after: 3 * time.Second, outcome: outcomeDone}},
			map[time.Duration]outcome{degradedAfter: outcomeDone},
		},
		"degraded for longer": {
			[]seen{{after: 0, outcome: outcomeDoubtful}, {after: 3 * time.Second, outcome: outcomeDoubtful}},
			map[time.Duration]outcome{degradedAfter - 1: outcomeOpen, degradedAfter: outcomeFailed},
		},
		"degraded, of a kind that needs its time": {
			[]seen{{after: 0, outcome: outcomeDoubtful, grace: time.Minute}},
			map[time.Duration]outcome{degradedAfter: outcomeOpen, time.Minute: outcomeFailed},
		},
		"a time that is beyond all measure": {
			[]seen{{after: 0, outcome: outcomeDoubtful, grace: time.Hour}},
			map[time.Duration]outcome{graceMost - 1: outcomeOpen, graceMost: outcomeFailed},
		},
		"failed for good": {[]seen{{after: 0, outcome: outcomeFailed}}, map[time.Duration]outcome{0: outcomeFailed}},
		"failed for good, and healthy afterwards": {
			[]seen{{after: 0, outcome: outcomeFailed}, {after: 1, outcome: outcomeDone}}, map[time.Duration]outcome{time.Second: outcomeFailed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sight{}
			for _, one := range c.seen {
				grace := time.Time{}
				if one.grace != 0 {
					grace = at(one.grace)
				}
				s.take(one.outcome, "", grace, at(one.after))
			}
			for after, want := range c.want {
				if got, _ := s.verdictLocked(at(after)); got != want {
					t.Errorf("after %s: %d, want %d", after, got, want)
				}
			}
		})
	}
}

func TestAListThatWasMadeBeforeAHooksObjectSaysNothingOfIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uid  string
		rv   uint64
		gone bool
	}{
		"a list from before":      {"", 6, false},
		"a list from afterwards":  {"", 8, true},
		"an event about it":       {"uid", 9, true},
		"an event about another":  {"other", 9, false},
		"a list without versions": {"", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := hooking(t)
			o := &object{rv: 7, sight: &sight{run: "7-1", uid: "uid"}}
			if r.vanished(o, c.uid, c.rv); o.sight.gone != c.gone {
				t.Errorf("gone: %v, want %v", o.sight.gone, c.gone)
			}
		})
	}
}
