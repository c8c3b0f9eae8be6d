// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	judged "kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// moment of a story: what an object is judged as, and what is told of it then.
type told struct {
	after      time.Duration // the last moment
	judged     health        // zero with final false: nothing happens but time
	final      bool
	generation int64
	want       health
}

func TestWhatIsToldOfHealthOverTime(t *testing.T) {
	t.Parallel()
	const none = health(99) // time passes, nothing is seen
	fallen := []told{
		{judged: healthy, want: healthy},
		{after: time.Second, judged: progressing, want: progressing}, {after: time.Second, judged: healthy, want: healthy},
		{after: time.Second, judged: progressing, want: progressing}, {after: time.Second, judged: healthy, want: healthy},
		{after: time.Second, judged: progressing, want: progressing},
	}
	for name, story := range map[string][]told{
		"a new object is told as it is judged": {
			{judged: progressing, want: progressing}, {after: time.Second, judged: healthy, want: healthy},
		},
		"what is degraded for a moment is told as progressing": {
			{judged: healthy, want: healthy}, {after: time.Second, judged: degraded, want: progressing},
			{after: 4 * time.Second, judged: healthy, want: healthy},
		},
		"what is degraded for five seconds is told so, with no event": {
			{judged: healthy, want: healthy}, {after: time.Second, judged: degraded, want: progressing},
			{after: degradedAfter - time.Millisecond, judged: none, want: progressing}, {after: time.Millisecond, judged: none, want: degraded},
		},
		"more events of what is degraded do not begin the wait anew": {
			{judged: degraded, want: progressing}, {after: 3 * time.Second, judged: degraded, want: progressing}, {after: 2 * time.Second, judged: degraded, want: degraded},
		},
		"what has failed for good is told at once": {
			{judged: healthy, want: healthy}, {after: time.Second, judged: degraded, final: true, want: degraded},
		},
		"what is degraded gets better at once": {
			{judged: degraded, final: true, want: degraded}, {after: time.Second, judged: healthy, want: healthy},
		},
		"what cannot be told any more is told at once": {
			{judged: healthy, want: healthy}, {after: time.Second, judged: healthUnknown, want: healthUnknown},
		},
		"the third fall within ten minutes has to be made up for": append(fallen[:len(fallen):len(fallen)],
			told{after: time.Second, judged: healthy, want: progressing}, told{after: healthyAfter - time.Millisecond, judged: none, want: progressing},
			told{after: time.Millisecond, judged: none, want: healthy}),
		"who falls again while that is waited for waits anew": append(fallen[:len(fallen):len(fallen)],
			told{after: time.Second, judged: healthy, want: progressing}, told{after: 20 * time.Second, judged: progressing, want: progressing},
			told{after: time.Second, judged: healthy, want: progressing}, told{after: 29 * time.Second, judged: none, want: progressing},
			told{after: time.Second, judged: none, want: healthy}),
		"who is degraded in between is told so": append(fallen[:len(fallen):len(fallen)],
			told{after: time.Second, judged: healthy, want: progressing}, told{after: time.Second, judged: degraded, want: progressing},
			told{after: degradedAfter, judged: none, want: degraded}),
		"falls of long ago do not count": append(fallen[:len(fallen):len(fallen)],
			told{after: fallWindow, judged: healthy, want: healthy}),
		"falls by changes of the specification do not count": {
			{judged: healthy, generation: 1, want: healthy},
			{after: time.Second, judged: progressing, generation: 2, want: progressing}, {after: time.Second, judged: healthy, generation: 2, want: healthy},
			{after: time.Second, judged: progressing, generation: 3, want: progressing}, {after: time.Second, judged: healthy, generation: 3, want: healthy},
			{after: time.Second, judged: progressing, generation: 4, want: progressing}, {after: time.Second, judged: healthy, generation: 4, want: healthy},
			{after: time.Second, judged: progressing, generation: 5, want: progressing}, {after: time.Second, judged: healthy, generation: 5, want: healthy},
		},
		"what is suspended is no fall": {
			{judged: healthy, want: healthy}, {after: time.Second, judged: suspended, want: suspended}, {after: time.Second, judged: healthy, want: healthy},
			{after: time.Second, judged: suspended, want: suspended}, {after: time.Second, judged: healthy, want: healthy},
			{after: time.Second, judged: suspended, want: suspended}, {after: time.Second, judged: healthy, want: healthy},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, _ := unstarted(t, time.Now())
			clock, ok := rn.clock.(*clocktesting.FakeClock)
			if !ok {
				t.Fatal("no fake clock")
			}
			r := rn.newRelease("r")
			o := &object{id: manifest.Identity{Kind: "Thing", Name: "t"}, applied: true, seen: true}
			r.objects[o.id] = o
			for i, m := range story {
				clock.Step(m.after)
				if m.judged == none {
					r.tell()
				} else {
					r.mu.Lock()
					before := o.view()
					r.tellLocked(o, judged.Verdict{State: m.judged, Message: "so", Final: m.final}, m.generation, rn.clock.Now())
					r.reviewLocked(o, before, rn.clock.Now())
					r.mu.Unlock()
				}
				if o.health != m.want {
					t.Fatalf("moment %d: told %s (%q), want %s", i, o.health, o.why, m.want)
				}
				if due := r.tellDueLocked(); due.IsZero() != (len(r.waits) == 0) {
					t.Fatalf("moment %d: due at %v with %d that wait", i, due, len(r.waits))
				}
			}
		})
	}
}

func TestAnObjectThatIsPeacefulTakesNoRoom(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	r := rn.newRelease("r")
	o := &object{id: manifest.Identity{Kind: "Thing", Name: "t"}, applied: true, seen: true}
	r.objects[o.id] = o
	now := rn.clock.Now()
	for _, v := range []judged.Verdict{{State: progressing}, {State: healthy}, {State: degraded, Final: true}, {State: healthUnknown}, {State: progressing}} {
		o.health = judged.Unknown
		r.tellLocked(o, v, 1, now)
		if o.smooth != nil {
			t.Errorf("%v is kept track of", v)
		}
	}
	o.health = healthy
	r.appliedLocked(o, judged.Verdict{State: progressing}, 2, now)
	if o.health != progressing || o.smooth != nil {
		t.Errorf("what was applied just now is told as %s, kept track of: %v", o.health, o.smooth != nil)
	}
	o.health = degraded
	r.tellLocked(o, judged.Verdict{State: degraded}, 1, now)
	if o.health != degraded || o.smooth != nil {
		t.Errorf("what was told as degraded is told as %s", o.health)
	}
}

// TestTimeInStateOutlivesARestart: what was not healthy when the agent ended, and is so
// still, is so since then; what is healthy by then begins anew.
func TestTimeInStateOutlivesARestart(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	since := rn.clock.Now().Add(-3 * time.Hour).Round(0)
	render := &Render{Objects: tunnel.Layer{Digest: "sha256:" + strings.Repeat("0a", 32), Size: 1}}
	hash := projection{1}.String()
	r := rn.newRelease("r")
	r.restore(&Record{UID: "r", Applied: render, Inventory: []Entry{
		{Identity: manifest.Identity{Kind: "Bad", Name: "a"}, Version: "v1", Render: render.Objects.Digest, Hash: hash, State: "Degraded", Since: since},
		{Identity: manifest.Identity{Kind: "Good", Name: "b"}, Version: "v1", Render: render.Objects.Digest, Hash: hash, State: "Progressing", Since: since},
	}})
	for _, o := range r.objects {
		verdict := judged.Verdict{State: degraded, Message: "still"}
		if o.id.Kind == "Good" {
			verdict = judged.Verdict{State: healthy}
		}
		before := o.view()
		o.seen = true
		r.tellLocked(o, verdict, 0, rn.clock.Now())
		r.reviewLocked(o, before, rn.clock.Now())
		switch {
		case o.id.Kind == "Bad" && (!o.since.Equal(since) || o.health != degraded):
			t.Errorf("%s is %s since %s, want Degraded since %s", o.id, o.health, o.since, since)
		case o.id.Kind == "Good" && (o.since.Equal(since) || o.health != healthy):
			t.Errorf("%s is %s since %s, want Healthy since now", o.id, o.health, o.since)
		}
		var e Entry
		r.saveStateLocked(o, &e)
		if (e.State == "") != (o.health == healthy) || (o.health != healthy && !e.Since.Equal(since)) {
			t.Errorf("%s is written down as %q since %s", o.id, e.State, e.Since)
		}
	}
}

func TestASuspendedObjectIsNeitherHealthyNorFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id     manifest.Identity
		status tunnel.Truth
		reason string
		rest   int
	}{
		"a Deployment": {manifest.Identity{Group: "apps", Kind: "Deployment", Name: "d"}, tunnel.Unknown, v1alpha1.ReasonSuspended, 1},
		"a CronJob, which makes nothing between its times either": {manifest.Identity{Group: "batch", Kind: "CronJob", Name: "c"}, tunnel.True, v1alpha1.ReasonHealthy, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, _ := unstarted(t, time.Now())
			r := rn.newRelease("r")
			r.total, r.settled = 1, true
			o := &object{id: c.id, applied: true, seen: true, health: suspended, why: "paused"}
			r.objects[o.id] = o
			out := r.buildLocked()
			if out.Healthy.Status != c.status || out.Healthy.Reason != c.reason || len(out.Exceptions) != c.rest || !out.Settled {
				t.Errorf("reported %+v with %v, settled %v", out.Healthy, out.Exceptions, out.Settled)
			}
			if o.blocks() {
				t.Error("a wave waits for it")
			}
		})
	}
}

// TestAnAutoscalerHasTheTimeThatAMetricsServerNeeds: told as Degraded when its condition is
// two minutes old, at once when it has no date, and no later for a date that is to come.
func TestAnAutoscalerHasTheTimeThatAMetricsServerNeeds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		changed string
		due     time.Duration
	}{
		"a fresh condition":         {start.Format(time.RFC3339), 2 * time.Minute},
		"one of a minute ago":       {start.Add(-time.Minute).Format(time.RFC3339), time.Minute},
		"one of long ago":           {start.Add(-time.Hour).Format(time.RFC3339), degradedAfter},
		"one without a date":        {"", degradedAfter},
		"one of a clock that leads": {start.Add(time.Hour).Format(time.RFC3339), graceMost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, _ := unstarted(t, start)
			clock, ok := rn.clock.(*clocktesting.FakeClock)
			if !ok {
				t.Fatal("no fake clock")
			}
			r := rn.newRelease("r")
			o := &object{id: manifest.Identity{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Name: "web"}, applied: true, seen: true}
			r.objects[o.id] = o
			condition := map[string]any{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}
			if c.changed != "" {
				condition["lastTransitionTime"] = c.changed
			}
			v := judged.Judge(map[string]any{
				"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
				"status": map[string]any{"conditions": []any{condition}},
			})
			r.mu.Lock()
			r.tellLocked(o, v, 1, clock.Now())
			r.mu.Unlock()
			clock.Step(c.due - time.Second)
			r.tell()
			if o.health != progressing || o.why != "FailedGetResourceMetric" {
				t.Errorf("a second before, it is told as %s (%q)", o.health, o.why)
			}
			clock.Step(time.Second)
			r.tell()
			if o.health != degraded {
				t.Errorf("told as %s (%q), want Degraded", o.health, o.why)
			}
		})
	}
}
