// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// conflict is the refusal of an agent that runs on another cluster than the one
// that the Cluster stands for. retry is 0 when waiting does not help.
func conflict(recorded, said, why string, retry time.Duration) *Refusal {
	r := &Refusal{
		Code: http.StatusForbidden, Reason: tunnel.ReasonClusterConflict,
		Message: fmt.Sprintf("this Cluster stands for the cluster with UID %s, the agent is on %s: %s", recorded, said, why),
	}
	if retry > 0 {
		// Not 403, after which an agent waits long.
		r.Code, r.Retry = http.StatusConflict, retry
	}
	return r
}

const (
	stillThere = "the former is connected, or was a moment ago; two clusters cannot share an identity, join the other as a Cluster of its own"
	wasLeft    = "it was left for the other; to go back, join anew"
)

// checkTarget tells whether an agent may speak for the cluster that it is on,
// going by what is recorded and by who is, or was a moment ago, connected.
func (g *Gateway) checkTarget(s *session, status *v1alpha1.ClusterStatus, said string) *Refusal {
	recorded := status.ClusterUID
	if said != "" && g.opts.Occupied(said) {
		return &Refusal{Code: http.StatusConflict, Retry: Grace, Reason: tunnel.ReasonClusterConflict, Message: "another Cluster stands for that cluster, " +
			"and the hub works on it without an agent (connectionMode agentless or inCluster): one of the two has to go"}
	}
	if said == "" || recorded == "" || said == recorded {
		return nil
	}
	if slices.Contains(status.FormerClusterUIDs, said) {
		return conflict(recorded, said, wasLeft, 0)
	}
	if other := g.sessions.elsewhere(s, said, Grace); other != "" {
		return conflict(other, said, stillThere, Grace)
	}
	// A hub that has just started does not know who was connected: the agent of the
	// recorded cluster gets the time to come back.
	if status.Reachable && time.Since(g.started) < Grace && status.Agent != nil && !g.sessions.knows(s.id.UID) &&
		g.opts.Now().Sub(status.Agent.JoinedAt.Time) > time.Since(g.started) {
		return conflict(recorded, said, stillThere, Grace)
	}
	return nil
}

// moveTarget records the cluster that an agent is on. expected is what checkTarget
// went by.
func moveTarget(status *v1alpha1.ClusterStatus, expected, said string) error {
	switch {
	case said == "" || said == status.ClusterUID:
		return nil
	case status.ClusterUID != expected:
		return conflict(status.ClusterUID, said, stillThere, Grace) // two came at once
	}
	if status.ClusterUID != "" {
		status.FormerClusterUIDs = slices.Insert(status.FormerClusterUIDs, 0, status.ClusterUID)
		status.FormerClusterUIDs = status.FormerClusterUIDs[:min(len(status.FormerClusterUIDs), maxFormer)]
	}
	status.ClusterUID = said
	return nil
}

// conflicts are the Clusters whose Ready condition names a conflict of late.
type conflicts struct {
	mu sync.Mutex
	at map[string]conflicted
}

type conflicted struct {
	id tunnel.ClusterID
	at time.Time
}

func (c *conflicts) note(id tunnel.ClusterID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[id.UID] = conflicted{id, time.Now()}
}

func (c *conflicts) has(uid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.at[uid]
	return ok
}

// over takes those out that are older than ConflictMemory.
func (c *conflicts) over() []tunnel.ClusterID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var over []tunnel.ClusterID
	for uid, one := range c.at {
		if time.Since(one.at) > ConflictMemory {
			over = append(over, one.id)
			delete(c.at, uid)
		}
	}
	return over
}

// recordConflict makes a Cluster's Ready condition say why an agent was refused.
func (g *Gateway) recordConflict(ctx context.Context, id tunnel.ClusterID, message string) {
	g.conflicts.note(id)
	if cluster, ok := g.opts.Clusters.ByUID(id.UID); ok {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Reason == v1alpha1.ReasonClusterConflict && ready.Message == message {
			return
		}
	}
	err := g.opts.Clusters.Update(ctx, id, func(status *v1alpha1.ClusterStatus) error {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterConflict, Message: message,
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(g.opts.Now()),
		})
		return nil
	})
	if err != nil {
		g.log.Error(err, "a conflict of clusters could not be recorded; the agent is refused all the same", "cluster", id.String())
	}
}

// clearConflict takes a Ready condition that names a conflict out, so that
// another is made.
func clearConflict(status *v1alpha1.ClusterStatus) {
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonClusterConflict {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionReady)
	}
}
