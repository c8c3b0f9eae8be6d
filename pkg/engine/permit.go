// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Names of the rules of a Cluster, as its spec.allowed has them.
const (
	ruleNamespaces   = "targetNamespaces"
	ruleClusterKinds = "clusterScopedKinds"
	ruleAccounts     = "serviceAccounts"
)

// forbiddenError says which rule of the Cluster something breaks.
type forbiddenError struct {
	rule  string
	what  string
	allow []string
}

func (e *forbiddenError) Error() string {
	allowed := "nothing"
	if len(e.allow) > 0 {
		allowed = clip(strings.Join(e.allow, ", "), 200)
	}
	return fmt.Sprintf("%s: spec.allowed.%s of the Cluster allows %s", e.what, e.rule, allowed)
}

// permitAccount says whether a Release may act as its order says.
func permitAccount(order tunnel.Order) error {
	if order.Permitted == nil || order.Permitted.ServiceAccounts == nil {
		return nil
	}
	for _, allowed := range order.Permitted.ServiceAccounts {
		if order.ServiceAccount != "" && sameAccount(allowed, order.ServiceAccount) {
			return nil
		}
	}
	what := "no service account is named"
	if order.ServiceAccount != "" {
		what = "service account " + clip(order.ServiceAccount, 100)
	}
	return &forbiddenError{rule: ruleAccounts, what: what, allow: order.Permitted.ServiceAccounts}
}

// sameAccount compares <namespace>:<name> with a rule, where "*" stands for either.
func sameAccount(rule, account string) bool {
	if rule == "*" {
		return true
	}
	wantSpace, wantName, ok := strings.Cut(rule, ":")
	space, name, _ := strings.Cut(account, ":")
	return ok && (wantSpace == "*" || wantSpace == space) && (wantName == "*" || wantName == name)
}

// permit says whether the Cluster permits an object. One whose kind is not served yet
// is judged by what is known, and once more when its kind was found.
func permit(order tunnel.Order, it *item) error {
	switch allowed := order.Permitted; {
	case allowed == nil:
		return nil
	case it.id.Namespace != "":
		return permitNamespace(allowed, it.id.Namespace)
	default:
		return permitClusterKind(allowed, it.id.Group, it.id.Kind)
	}
}

func permitNamespace(allowed *tunnel.Allowed, namespace string) error {
	if allowed.Namespaces == nil {
		return nil
	}
	for _, rule := range allowed.Namespaces {
		prefix, open := strings.CutSuffix(rule, "*")
		if namespace == rule || (open && strings.HasPrefix(namespace, prefix)) {
			return nil
		}
	}
	return &forbiddenError{rule: ruleNamespaces, what: "namespace " + clip(namespace, 63), allow: allowed.Namespaces}
}

func permitClusterKind(allowed *tunnel.Allowed, group, kind string) error {
	if allowed.ClusterKinds == nil {
		return nil
	}
	full := kind
	if group != "" {
		full = kind + "." + group
	}
	for _, rule := range allowed.ClusterKinds {
		if rule == "*" || rule == kind || rule == full {
			return nil
		}
	}
	return &forbiddenError{rule: ruleClusterKinds, what: "kind " + clip(full, 100), allow: allowed.ClusterKinds}
}

// forbidden marks all objects of a plan that the Cluster does not permit, before
// anything is asked of the server.
func (p *plan) forbidden(order tunnel.Order) (tunnel.Finding, bool) {
	if err := permitAccount(order); err != nil {
		return tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonForbidden, Message: "nothing applied: " + err.Error()}, true
	}
	if order.Permitted == nil {
		return tunnel.Finding{}, false
	}
	bad := false
	for _, it := range p.all() {
		if err := permit(order, it); err != nil {
			it.fail(rejected, exceptionRejected, err.Error())
			bad = true
		}
	}
	if !bad {
		return tunnel.Finding{}, false
	}
	finding, _ := p.verdict()
	finding.Reason = v1alpha1.ReasonForbidden
	return finding, true
}
