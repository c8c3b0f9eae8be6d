// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"errors"
	"testing"

	"kumodo.io/convoy/pkg/expression"
)

// BenchmarkTheMostThatOneEvaluationTakes: the expression is stopped at the limit.
func BenchmarkTheMostThatOneEvaluationTakes(b *testing.B) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = map[string]any{"n": int64(i)}
	}
	program, err := expression.Compile(`object.all(a, object.all(b, a.n + b.n >= 0))`, expression.Bool, "object")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := program.Bool(map[string]any{"object": list}); !errors.Is(err, expression.ErrCost) {
			b.Fatal(err)
		}
	}
}
