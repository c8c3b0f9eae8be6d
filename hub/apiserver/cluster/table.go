// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/table"
)

func tableConvertor(c clock.PassiveClock) rest.TableConvertor {
	type column = table.Column[*v1alpha1.Cluster]
	return table.New(c,
		column{Name: "Ready", Description: "Whether an agent is connected.", Cell: func(c *v1alpha1.Cluster) any {
			status, _, _ := table.Condition(c.Status.Conditions, v1alpha1.ConditionReady)
			return status
		}},
		column{Name: "Reason", Description: "Why it is or is not ready.", Cell: func(c *v1alpha1.Cluster) any {
			if c.DeletionTimestamp != nil {
				return v1alpha1.ReasonDeleting
			}
			_, reason, _ := table.Condition(c.Status.Conditions, v1alpha1.ConditionReady)
			return reason
		}},
		column{Name: "Version", Description: "Kubernetes version of the cluster.", Cell: func(c *v1alpha1.Cluster) any {
			return c.Status.KubernetesVersion
		}},
		column{Name: "Agent", Description: "Version of the agent.", Cell: func(c *v1alpha1.Cluster) any {
			return c.Status.AgentVersion
		}},
		column{Name: "Target-UID", Wide: true, Description: "UID of the cluster's kube-system namespace: its identity.", Cell: func(c *v1alpha1.Cluster) any {
			return c.Status.ClusterUID
		}},
		column{Name: "Certificate", Wide: true, Description: "How long the agent's certificate is still valid.", Cell: func(cl *v1alpha1.Cluster) any {
			if cl.Status.Agent == nil {
				return ""
			}
			return table.Until(c.Now(), cl.Status.Agent.CertificateExpiresAt)
		}},
		column{Name: "Message", Wide: true, Description: "What the Ready condition says, or the deletion that is under way.", Cell: func(c *v1alpha1.Cluster) any {
			_, _, message := table.Condition(c.Status.Conditions, v1alpha1.ConditionReady)
			if _, _, deleting := table.Condition(c.Status.Conditions, v1alpha1.ConditionDeleting); deleting != "" {
				message = deleting
			}
			return table.Message(message)
		}},
	)
}
