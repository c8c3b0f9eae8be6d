// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestEnginesOfOneProcessCountTogether(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	one, two := newMetrics(registry), newMetrics(registry)
	one.report()
	two.report()
	one.releases.Set(3)
	two.releases.Set(5)
	one.releases.Set(2)
	want := func(releases string) {
		t.Helper()
		err := testutil.GatherAndCompare(registry, strings.NewReader(`# HELP convoy_engine_releases Releases kept.
# TYPE convoy_engine_releases gauge
convoy_engine_releases `+releases+`
# HELP convoy_engine_reports_total Reports made, before they are folded.
# TYPE convoy_engine_reports_total counter
convoy_engine_reports_total 2
`), "convoy_engine_releases", "convoy_engine_reports_total")
		if err != nil {
			t.Error(err)
		}
	}
	want("7")
	(&Runner{meter: two}).Discard()
	want("2")
}
