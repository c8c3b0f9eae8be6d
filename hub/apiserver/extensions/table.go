// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/table"
)

func tableConvertor[T ruleSet](c clock.PassiveClock) rest.TableConvertor {
	ready := func(set T) (status, reason, message string) {
		return table.Condition(set.RuleSetStatus().Conditions, v1alpha1.ConditionReady)
	}
	return table.New(c,
		table.Column[T]{Name: "Rules", Integer: true, Description: "How many rules it has.", Cell: func(set T) any {
			return int64(len(set.RuleSetSpec().Rules))
		}},
		table.Column[T]{Name: "Ready", Description: "Whether all of them can be used.", Cell: func(set T) any {
			status, _, _ := ready(set)
			return status
		}},
		table.Column[T]{Name: "Reason", Description: "Why it is or is not ready.", Cell: func(set T) any {
			_, reason, _ := ready(set)
			return reason
		}},
		table.Column[T]{Name: "Kinds", Wide: true, Description: "The kinds that it judges.", Cell: func(set T) any {
			return table.Message(kinds(set.RuleSetSpec()))
		}},
		table.Column[T]{Name: "Message", Wide: true, Description: "What the Ready condition says.", Cell: func(set T) any {
			_, _, message := ready(set)
			return table.Message(message)
		}},
	)
}

// kinds as kubectl names them: Kind.group.
func kinds(spec *v1alpha1.HealthRuleSetSpec) string {
	names := make([]string, 0, len(spec.Rules))
	for i := range spec.Rules {
		name := spec.Rules[i].Kind
		if group := spec.Rules[i].Group; group != "" {
			name += "." + group
		}
		names = append(names, name)
	}
	return strings.Join(slices.Compact(names), ",")
}
