// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// policyOf is the part of the spec that the engine acts on, for a render. Its
// namespace is the one that the render was made for, whatever the spec says now.
func policyOf(release *v1alpha1.Release, render *v1alpha1.RenderStatus) tunnel.Policy {
	namespace := release.Namespace
	if render != nil && render.TargetNamespace != "" {
		namespace = render.TargetNamespace
	}
	p := release.Spec.SyncPolicy
	policy := tunnel.Policy{
		Automatic:      p.Automatic == nil || *p.Automatic,
		TimeoutSeconds: max(int64(durationOr(p.Timeout, defaultTimeout).Seconds()), 1),
		ForceConflicts: p.Conflicts == v1alpha1.ConflictsForce,
		Replace:        p.Immutable == v1alpha1.ImmutableReplace,
		PruneOrphaned:  p.Prune.Orphaned == nil || *p.Prune.Orphaned,
		AllowEmpty:     p.Prune.AllowEmpty,
		Namespace:      namespace,
		Allowed:        p.Prune.Allowed,
		Budget:         budgetOf(p.DeletionBudget),
		Retry:          retryOf(p.Retry),
		Suspended:      release.Spec.Suspend,
	}
	if p.Prune.Propagation != metav1.DeletePropagationBackground {
		policy.Propagation = string(p.Prune.Propagation)
	}
	return policy
}

func durationOr(given *metav1.Duration, otherwise time.Duration) time.Duration {
	if given == nil || given.Duration <= 0 {
		return otherwise
	}
	return given.Duration
}

func int32Or(given *int32, otherwise int32) int32 {
	if given == nil {
		return otherwise
	}
	return *given
}

func budgetOf(budget *v1alpha1.DeletionBudget) *tunnel.DeletionBudget {
	if budget == nil {
		return nil
	}
	return &tunnel.DeletionBudget{Count: int32Or(budget.Count, defaultBudgetCount), Percent: int32Or(budget.Percent, defaultBudgetPercent)}
}

func retryOf(retry v1alpha1.RetryPolicy) *tunnel.Retry {
	if retry == (v1alpha1.RetryPolicy{}) {
		return nil
	}
	low, high := durationOr(retry.Minimum, defaultRetryMin), durationOr(retry.Maximum, defaultRetryMax)
	return &tunnel.Retry{
		Limit: int32Or(retry.Limit, noLimit), MinSeconds: max(int64(low.Seconds()), 1), MaxSeconds: int64(max(high, low).Seconds()),
	}
}

// termsOf are the terms of an order for a render: what the spec and the Cluster say,
// but for the health rules. cluster is nil while there is none.
func termsOf(release *v1alpha1.Release, cluster *v1alpha1.Cluster, render *v1alpha1.RenderStatus) deliver.Terms {
	terms := deliver.Terms{Policy: policyOf(release, render), Wave: release.Spec.ClusterWave, Ignore: ignoreOf(release.Spec.Drift.Ignore)}
	terms.ServiceAccount = accountOf(release, terms.Policy.Namespace)
	if cluster != nil {
		terms.Permitted = permittedOn(cluster)
	}
	return terms
}

// accountOf is the account that a Release's calls are made as, <namespace>:<name>.
func accountOf(release *v1alpha1.Release, namespace string) string {
	name := release.Spec.ServiceAccountName
	if name == "" || strings.Contains(name, ":") {
		return name
	}
	return namespace + ":" + name
}

func ignoreOf(rules []v1alpha1.DriftIgnore) []tunnel.Ignore {
	var out []tunnel.Ignore
	for i := range rules {
		out = append(out, tunnel.Ignore(rules[i]))
	}
	return out
}

// permittedOn is what a Cluster permits; nil: all.
func permittedOn(cluster *v1alpha1.Cluster) *tunnel.Allowed {
	allowed := cluster.Spec.Allowed
	if allowed == nil || allowed.TargetNamespaces == nil && allowed.ClusterScopedKinds == nil && allowed.ServiceAccounts == nil {
		return nil
	}
	return &tunnel.Allowed{Namespaces: allowed.TargetNamespaces, ClusterKinds: allowed.ClusterScopedKinds, ServiceAccounts: allowed.ServiceAccounts}
}

// inNamespace are terms for a render that was made for a namespace.
func inNamespace(release *v1alpha1.Release, terms deliver.Terms, namespace string) deliver.Terms {
	terms.Policy.Namespace, terms.ServiceAccount = namespace, accountOf(release, namespace)
	return terms
}

// suspended are the terms of an order, with drift no longer repaired.
func suspended(ordered tunnel.Order) deliver.Terms {
	terms := deliver.TermsOf(ordered)
	terms.Policy.Suspended = true
	return terms
}

// terms are those that an order for a render has to have now.
func (r *Reconciler) terms(w *work, render *v1alpha1.RenderStatus) deliver.Terms {
	cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: w.release.Namespace, Name: w.release.Spec.ClusterRef.Name})
	if !ok {
		cluster = nil
	}
	terms := termsOf(w.release, cluster, render)
	terms.Rules, terms.Facts = w.rules.layer, w.rules.facts
	return terms
}

// rules are the health rules of a Release.
type rules struct {
	layer *tunnel.Layer
	facts map[string]string
	// broken says why there are none; nil: there are.
	broken *report.Finding
}

// rulesOf asks for the health rules. As long as they cannot be told nothing is ordered:
// what is not well would pass for healthy.
func (r *Reconciler) rulesOf(ctx context.Context, w *work) {
	if r.Rules == nil {
		return
	}
	cluster, _ := r.Cache.Cluster(types.NamespacedName{Namespace: w.release.Namespace, Name: w.release.Spec.ClusterRef.Name})
	layer, facts, err := r.Rules.Rules(ctx, w.release, cluster)
	if err != nil {
		w.rules.broken = &report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRulesFailed, Message: short(err.Error())}
		w.again = true
		return
	}
	w.rules.layer, w.rules.facts = layer, facts
}

// short bounds a message.
func short(text string) string {
	if len(text) <= maxMessageBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessageBytes], "") + "..."
}
