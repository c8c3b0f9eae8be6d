// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// deepCost counts comparisons of lists and maps by all that is in them. The library takes
// them for as cheap as those of two numbers, and live objects can be large.
type deepCost struct{}

var _ interpreter.ActualCostEstimator = deepCost{}

// textCost is how many bytes of a text cost as much as one step.
const textCost = 10

// CallCost gives the cost of a call; nil: as the library has it.
func (deepCost) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if len(args) != 2 {
		return nil
	}
	switch function {
	case operators.Equals, operators.NotEquals:
		if !deep(args[0]) || !deep(args[1]) {
			return nil
		}
		cost := min(weigh(args[0].Value(), maxCost), weigh(args[1].Value(), maxCost))
		return &cost
	case operators.In:
		if _, isList := args[1].(traits.Lister); !isList {
			return nil
		}
		cost := weigh(args[1].Value(), maxCost)
		return &cost
	}
	return nil
}

func deep(value ref.Val) bool {
	switch value.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// weigh counts what is in a value, up to a limit beyond which nobody has to know.
func weigh(value any, limit uint64) uint64 {
	weight := uint64(1)
	add := func(inner any) bool {
		weight += weigh(inner, limit-min(weight, limit))
		return weight < limit
	}
	switch v := value.(type) {
	case string:
		weight += uint64(len(v)) / textCost
	case []any:
		for _, inner := range v {
			if !add(inner) {
				break
			}
		}
	case map[string]any:
		for _, inner := range v {
			if !add(inner) {
				break
			}
		}
	case map[string]string:
		for _, inner := range v {
			if !add(inner) {
				break
			}
		}
	case []ref.Val:
		for _, inner := range v {
			if !add(inner.Value()) {
				break
			}
		}
	case map[ref.Val]ref.Val:
		for _, inner := range v {
			if !add(inner.Value()) {
				break
			}
		}
	}
	return min(weight, limit)
}
