// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/table"
)

func tableConvertor[T object](c clock.PassiveClock) rest.TableConvertor {
	ready := func(t T) (status, reason, message string) {
		return table.Condition(t.SourceStatus().Conditions, v1alpha1.ConditionReady)
	}
	return table.New(c,
		table.Column[T]{Name: "URL", Description: "Where the content is.", Cell: func(t T) any { return t.SourceURL() }},
		table.Column[T]{Name: "Ready", Description: "Whether it can be reached.", Cell: func(t T) any {
			status, _, _ := ready(t)
			return status
		}},
		table.Column[T]{Name: "Revision", Description: "What was last seen there.", Cell: func(t T) any {
			return table.Digest(t.SourceStatus().Revision)
		}},
		table.Column[T]{Name: "Reason", Wide: true, Description: "Why it is or is not ready.", Cell: func(t T) any {
			_, reason, _ := ready(t)
			return reason
		}},
		table.Column[T]{Name: "Message", Wide: true, Description: "What the Ready condition says.", Cell: func(t T) any {
			_, _, message := ready(t)
			return table.Message(message)
		}},
	)
}
