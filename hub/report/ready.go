// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// SetReady puts into a Cluster's status, inside a mutate of Reporter.Cluster, what
// only its caller can know of Ready: reason ProbeFailed, Unsupported or
// ClusterConflict, with a message. It stays until ClearReady, until another is set,
// or, but for ClusterConflict, until the cluster is reachable. Other reasons follow
// from the rest of the status, and are ignored here.
//
// A Cluster that is reachable stays Ready=True in a conflict, with that reason and
// message: the agent that is refused changes nothing for the one that is served.
func SetReady(status *v1alpha1.ClusterStatus, reason, message string) {
	if !saidReason(reason) {
		return
	}
	ClearReady(status, "")
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: clip(message, maxMessage),
	})
}

// ClearReady takes back what SetReady put there with that reason; an empty reason
// stands for any.
func ClearReady(status *v1alpha1.ClusterStatus, reason string) {
	kept := make([]metav1.Condition, 0, len(status.Conditions))
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionReady && (reason == "" || c.Reason == reason) {
			continue
		}
		kept = append(kept, c)
	}
	status.Conditions = kept
}

// saidReason says whether a reason of a Cluster's Ready condition is said by a room
// and kept, instead of made from the status.
func saidReason(reason string) bool {
	switch reason {
	case v1alpha1.ReasonProbeFailed, v1alpha1.ReasonUnsupported, v1alpha1.ReasonClusterConflict:
		return true
	}
	return false
}

// clusterObserved is everything that the conditions of a Cluster are made of.
type clusterObserved struct {
	// previous conditions, as stored.
	previous []metav1.Condition
	mode     v1alpha1.ConnectionMode
	// status of now; of its conditions only what SetReady and SetDeleting said counts.
	status *v1alpha1.ClusterStatus
	lost   lost
	now    time.Time
}

// clusterConditions is the one place where a Cluster's conditions are made.
func clusterConditions(o clusterObserved) []metav1.Condition {
	ready := clusterReady(o)
	ready.Type = v1alpha1.ConditionReady
	out := []metav1.Condition{ready}
	if behind, ok := clusterBehind(o); ok {
		behind.Type = v1alpha1.ConditionHubBehind
		out = append(out, behind)
	}
	if deleting := meta.FindStatusCondition(o.status.Conditions, v1alpha1.ConditionDeleting); deleting != nil {
		out = append(out, *deleting)
	}
	for i := range out {
		c := &out[i]
		c.ObservedGeneration, c.LastTransitionTime = o.status.ObservedGeneration, metav1.NewTime(o.now.Truncate(time.Second))
		if old := meta.FindStatusCondition(o.previous, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return out
}

func clusterReady(o clusterObserved) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, Message: message}
	}
	said := meta.FindStatusCondition(o.status.Conditions, v1alpha1.ConditionReady)
	if said != nil && !saidReason(said.Reason) {
		said = nil
	}
	agent := o.status.Agent
	dials := dialled(o.mode)
	switch {
	case agent != nil && agent.RevokedAt != nil:
		return is(metav1.ConditionFalse, v1alpha1.ReasonRevoked,
			"the agent's identity was revoked at "+agent.RevokedAt.UTC().Format(time.RFC3339)+"; a new join makes a new one")
	case agent != nil && agent.CloneDetectedAt != nil:
		return is(metav1.ConditionFalse, v1alpha1.ReasonCloneDetected,
			"two agents used one identity at "+agent.CloneDetectedAt.UTC().Format(time.RFC3339)+"; neither is accepted until a new join")
	case o.status.Reachable && said != nil && said.Reason == v1alpha1.ReasonClusterConflict:
		return is(metav1.ConditionTrue, said.Reason, said.Message)
	case o.status.Reachable && dials:
		return is(metav1.ConditionTrue, v1alpha1.ReasonConnected, "the hub reaches the cluster")
	case o.status.Reachable:
		return is(metav1.ConditionTrue, v1alpha1.ReasonConnected, "the agent has a session")
	case said != nil:
		return is(metav1.ConditionFalse, said.Reason, said.Message)
	case dials:
		return is(metav1.ConditionFalse, v1alpha1.ReasonDisconnected, "the hub does not reach the cluster")
	case agent == nil:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNeverJoined, "no agent has joined yet")
	}
	return is(metav1.ConditionFalse, v1alpha1.ReasonDisconnected, "the agent has no session; it goes on enforcing what it was last ordered")
}

// clusterBehind is the condition HubBehind; false: there is nothing that the hub
// has lost. As long as the agent has not said to this process what it holds, the
// previous answer stays.
func clusterBehind(o clusterObserved) (metav1.Condition, bool) {
	if old := meta.FindStatusCondition(o.previous, v1alpha1.ConditionHubBehind); old != nil && !o.lost.known {
		return *old, true
	}
	var parts []string
	say := func(count int, text string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf(text, count))
		}
	}
	say(o.lost.adopted, "%d Releases run orders that this hub had lost and took back")
	say(int(o.status.UnknownReleaseCount), "%d Releases run there that do not exist here")
	say(o.lost.foreign, "%d orders there are signed by a key that this hub does not have")
	say(o.lost.missing, "%d newer orders were not given back")
	if len(parts) == 0 {
		return metav1.Condition{}, false
	}
	return metav1.Condition{
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHubBehind,
		Message: "the agent holds what this hub has lost; nothing is rolled back or deleted: " + strings.Join(parts, "; "),
	}, true
}

// dialled says whether the hub dials a cluster itself.
func dialled(mode v1alpha1.ConnectionMode) bool {
	return mode == v1alpha1.ConnectionModeAgentless || mode == v1alpha1.ConnectionModeInCluster
}
