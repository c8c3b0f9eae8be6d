// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/report"
)

// refused says why nothing may be ordered for a Release whatever its render is; nil: it
// may. What runs stays, under the order that there is.
func (r *Reconciler) refused(w *work) *report.Finding {
	if rule := forbidden(w.release, w.cluster); rule != "" {
		return &report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonForbidden, Message: rule + "; what runs is kept"}
	}
	return w.rules.broken
}

// forbidden names the rule of the Cluster that does not permit what the spec asks for;
// empty: there is none. Single objects are looked at by the agent.
func forbidden(release *v1alpha1.Release, cluster *v1alpha1.Cluster) string {
	allowed := cluster.Spec.Allowed
	if allowed == nil {
		return ""
	}
	namespace := targetNamespace(release)
	if allowed.TargetNamespaces != nil && !slices.ContainsFunc(allowed.TargetNamespaces, func(p string) bool { return matches(p, namespace) }) {
		return fmt.Sprintf("spec.allowed.targetNamespaces of Cluster %q does not permit the namespace %q", cluster.Name, namespace)
	}
	if allowed.ServiceAccounts == nil {
		return ""
	}
	account := accountOf(release, namespace)
	if account == "" {
		return fmt.Sprintf("spec.allowed.serviceAccounts of Cluster %q asks for a spec.serviceAccountName", cluster.Name)
	}
	if !slices.ContainsFunc(allowed.ServiceAccounts, func(p string) bool { return accountMatches(p, account) }) {
		return fmt.Sprintf("spec.allowed.serviceAccounts of Cluster %q does not permit %q", cluster.Name, account)
	}
	return ""
}

// matches says whether a name is the pattern, or begins with one that ends in "*".
func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// accountMatches compares <namespace>:<name> with a pattern that may have "*" for either.
func accountMatches(pattern, account string) bool {
	namespace, name, _ := strings.Cut(pattern, ":")
	inNamespace, isName, _ := strings.Cut(account, ":")
	return (namespace == "*" || namespace == inNamespace) && (name == "*" || name == isName)
}
