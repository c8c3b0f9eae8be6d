// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source/gittest"
)

func TestARenderThatFailedForItsInputsIsNotMadeAgainForAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	registry := prometheus.NewRegistry()
	w := newWorld(t, func(o *render.Options) { o.Clock, o.Registerer = clock, registry })
	spared := func() int {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "convoy_render_spared_total" {
				return int(family.GetMetric()[0].GetCounter().GetValue())
			}
		}
		t.Fatal("there is no such metric")
		return 0
	}
	recursive := tree{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.1.0}", "app/templates/a.yaml": `{{ fail "on purpose" }}`}
	try := func(what string, want int, change func(*render.Job)) {
		t.Helper()
		work := job("team", recursive)
		change(&work)
		_, err := w.Render(t.Context(), work)
		if err == nil || !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("%s: %v", what, err)
		}
		if got := spared(); got != want {
			t.Errorf("%s: %d renders were spared so far, want %d", what, got, want)
		}
	}
	same := func(*render.Job) {}
	try("for the first time", 0, same)
	try("again", 1, same)
	clock.Step(9 * time.Minute)
	try("nine minutes later", 2, same)
	try("when it is asked for", 2, func(j *render.Job) { j.Fresh = true })
	try("after that", 3, same)
	try("of another tenant", 3, func(j *render.Job) { j.Tenant = "other" })
	try("at another revision", 3, func(j *render.Job) { j.Content.World.Revision = "next" })
	try("with leave to have nothing", 3, func(j *render.Job) { j.Content.AllowEmpty = true })
	clock.Step(11 * time.Minute)
	try("much later", 3, same)

	// What is mended in the source renders at once.
	recursive = tree{"app/a.yaml": gittest.ConfigMap("mended", 100)}
	if result, err := w.Render(t.Context(), job("team", recursive)); err != nil || result.Count != 1 {
		t.Errorf("mended: %+v, %v", result, err)
	}
	if n := testutil.CollectAndCount(registry, "convoy_render_spared_total"); n != 1 {
		t.Errorf("%d series", n)
	}
}
