// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// JudgedBy sets who tells which sets of health rules a Release is to be judged by and is
// not. It is called before Run and must not block.
func (r *Reporter) JudgedBy(missing func(release *v1alpha1.Release) []string) {
	r.missingRules = missing
}

// judge takes back a Healthy that was found without rules that were to be asked. What
// the agent says stays when it is no good news.
func judge(next *v1alpha1.Release, previous []metav1.Condition, missing []string, now time.Time) {
	healthy := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.ConditionHealthy)
	if healthy == nil {
		return
	}
	switch {
	case len(missing) > 0 && healthy.Status == metav1.ConditionTrue, len(missing) > 0 && healthy.Reason == v1alpha1.ReasonRulesMissing:
		unsure(healthy, previous, v1alpha1.ReasonRulesMissing, clip(missingMessage(missing), maxMessage), now)
	case len(missing) == 0 && healthy.Reason == v1alpha1.ReasonRulesMissing:
		// It is what was said before: what the agent found is asked for anew.
		unsure(healthy, previous, v1alpha1.ReasonNotReported, "all health rules are there now; the agent is asked", now)
	default:
		return
	}
	ready := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == v1alpha1.ReasonRulesMissing) {
		unsure(ready, previous, healthy.Reason, clip(v1alpha1.ConditionHealthy+": "+healthy.Message, maxMessage), now)
	}
}

func unsure(c *metav1.Condition, previous []metav1.Condition, reason, message string, now time.Time) {
	if c.Status != metav1.ConditionUnknown {
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	}
	c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reason, message
	if old := meta.FindStatusCondition(previous, c.Type); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
}

func missingMessage(missing []string) string {
	return fmt.Sprintf("sets of health rules that it is to be judged by are missing: %s; until they are there it is judged by the rules of before", strings.Join(missing, ", "))
}

// askWhenJudged asks the agent how a Release is whose rules were missing and are so no
// longer. When there is a new order, the agent reports on that by itself.
func (r *Reporter) askWhenJudged(before *v1alpha1.ReleaseStatus, out *v1alpha1.Release) {
	if before.Sequence != out.Status.Sequence {
		return
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionHealthy), meta.FindStatusCondition(out.Status.Conditions, v1alpha1.ConditionHealthy)
	if was == nil || is == nil || was.Reason != v1alpha1.ReasonRulesMissing || is.Reason != v1alpha1.ReasonNotReported {
		return
	}
	cluster, ok := r.options.Clusters.Cluster(types.NamespacedName{Namespace: out.Namespace, Name: out.Spec.ClusterRef.Name})
	if ok {
		// What it answers may be what it has said before, which counts once more.
		r.mu.Lock()
		r.startOverLocked(out.UID)
		r.mu.Unlock()
		r.asks.Add(tunnel.ClusterID{Namespace: cluster.Namespace, Name: cluster.Name, UID: string(cluster.UID)})
	}
}
