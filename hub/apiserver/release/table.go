// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/table"
)

func tableConvertor(c clock.PassiveClock) rest.TableConvertor {
	type column = table.Column[*v1alpha1.Release]
	return table.New(c,
		column{Name: "Cluster", Description: "The target.", Cell: func(r *v1alpha1.Release) any {
			return r.Spec.ClusterRef.Name
		}},
		column{Name: "Ready", Description: "Whether it is rendered, applied, in sync and healthy.", Cell: func(r *v1alpha1.Release) any {
			status, _, _ := table.Condition(r.Status.Conditions, v1alpha1.ConditionReady)
			if r.DeletionTimestamp != nil && status == string(metav1.ConditionTrue) {
				return string(metav1.ConditionFalse) // as the next write says
			}
			return status
		}},
		column{Name: "Status", Description: "Why it is or is not ready.", Cell: func(r *v1alpha1.Release) any {
			if r.DeletionTimestamp != nil {
				return v1alpha1.ReasonDeleting
			}
			_, reason, _ := table.Condition(r.Status.Conditions, v1alpha1.ConditionReady)
			return reason
		}},
		column{Name: "Revision", Description: "What the current render was made of.", Cell: func(r *v1alpha1.Release) any {
			return table.Digest(r.Status.SourceRevision)
		}},
		column{Name: "Render", Wide: true, Description: "Digest of the current render, shortened.", Cell: func(r *v1alpha1.Release) any {
			return table.Digest(r.Status.RenderRef)
		}},
		column{Name: "Applied", Wide: true, Description: "Digest of the render last applied in full, shortened.", Cell: func(r *v1alpha1.Release) any {
			return table.Digest(r.Status.AppliedRef)
		}},
		column{Name: "Objects", Wide: true, Description: "Objects applied, of those in the render.", Cell: func(r *v1alpha1.Release) any {
			return of(r.Status.Objects.Applied, r.Status.Objects.Total)
		}},
		column{Name: "Healthy", Wide: true, Description: "Objects healthy, of those in the render.", Cell: func(r *v1alpha1.Release) any {
			return of(r.Status.Objects.Healthy, r.Status.Objects.Total)
		}},
		column{Name: "Sequence", Wide: true, Integer: true, Description: "Sequence of the current order.", Cell: func(r *v1alpha1.Release) any {
			return r.Status.Sequence
		}},
		column{Name: "Message", Wide: true, Description: "What the Ready condition says.", Cell: func(r *v1alpha1.Release) any {
			_, _, message := table.Condition(r.Status.Conditions, v1alpha1.ConditionReady)
			return table.Message(message)
		}},
	)
}

func of(n, total int32) string {
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", n, total)
}
