// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/table"
)

func tableConvertor(c clock.PassiveClock) rest.TableConvertor {
	type column = table.Column[*v1alpha1.GitRepository]
	return table.New(c,
		column{Name: "URL", Description: "Where the repository is.", Cell: func(g *v1alpha1.GitRepository) any {
			return g.Spec.URL
		}},
		column{Name: "Ready", Description: "Whether it can be reached.", Cell: func(g *v1alpha1.GitRepository) any {
			status, _, _ := table.Condition(g.Status.Conditions, v1alpha1.ConditionReady)
			return status
		}},
		column{Name: "Revision", Description: "What the ref was last seen at.", Cell: func(g *v1alpha1.GitRepository) any {
			return table.Digest(g.Status.Revision)
		}},
		column{Name: "Reason", Wide: true, Description: "Why it is or is not ready.", Cell: func(g *v1alpha1.GitRepository) any {
			_, reason, _ := table.Condition(g.Status.Conditions, v1alpha1.ConditionReady)
			return reason
		}},
		column{Name: "Message", Wide: true, Description: "What the Ready condition says.", Cell: func(g *v1alpha1.GitRepository) any {
			_, _, message := table.Condition(g.Status.Conditions, v1alpha1.ConditionReady)
			return table.Message(message)
		}},
	)
}
