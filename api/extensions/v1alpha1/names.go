// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kinds of this group.
const (
	KindHealthRuleSet       = "HealthRuleSet"
	KindGlobalHealthRuleSet = "GlobalHealthRuleSet"
)

// ConditionReady says whether all rules of a set can be used.
const ConditionReady = "Ready"

// Reasons of Ready.
const (
	// ReasonCompiled: all rules compile.
	ReasonCompiled = "Compiled"
	// ReasonRulesFailed: the rules that status.errors names do not compile and are left
	// out; the others are used.
	ReasonRulesFailed = "RulesFailed"
)

// AllKinds as the kind of a rule stands for all kinds of its group.
const AllKinds = "*"

// RuleSet is what the two kinds of rule sets have in common. A GlobalHealthRuleSet has no
// namespace.
type RuleSet interface {
	metav1.Object
	// RuleSetKind is KindHealthRuleSet or KindGlobalHealthRuleSet.
	RuleSetKind() string
	RuleSetSpec() *HealthRuleSetSpec
	RuleSetStatus() *HealthRuleSetStatus
}

var (
	_ RuleSet = &HealthRuleSet{}
	_ RuleSet = &GlobalHealthRuleSet{}
)

// RuleSetKind implements RuleSet.
func (*HealthRuleSet) RuleSetKind() string { return KindHealthRuleSet }

// RuleSetSpec implements RuleSet: the spec itself, not a copy.
func (s *HealthRuleSet) RuleSetSpec() *HealthRuleSetSpec { return &s.Spec }

// RuleSetStatus implements RuleSet: the status itself, not a copy.
func (s *HealthRuleSet) RuleSetStatus() *HealthRuleSetStatus { return &s.Status }

// RuleSetKind implements RuleSet.
func (*GlobalHealthRuleSet) RuleSetKind() string { return KindGlobalHealthRuleSet }

// RuleSetSpec implements RuleSet: the spec itself, not a copy.
func (s *GlobalHealthRuleSet) RuleSetSpec() *HealthRuleSetSpec { return &s.Spec }

// RuleSetStatus implements RuleSet: the status itself, not a copy.
func (s *GlobalHealthRuleSet) RuleSetStatus() *HealthRuleSetStatus { return &s.Status }
