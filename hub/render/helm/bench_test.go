// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"testing"
)

func benchmark(b *testing.B, chart string, objects int) {
	b.Helper()
	p := parity{chart: chart}
	_, tree := p.source(b)
	if got := len(p.ours(b, tree)); got != objects {
		b.Fatalf("%d objects, want %d", got, objects)
	}
	b.ReportAllocs()
	for b.Loop() {
		result, err := try(tree)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := result.Objects(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmallChart renders a web application of four objects.
func BenchmarkSmallChart(b *testing.B) { benchmark(b, "webapp", 4) }

// BenchmarkLargeChart renders a chart of two hundred objects.
func BenchmarkLargeChart(b *testing.B) { benchmark(b, "tenants", 200) }
