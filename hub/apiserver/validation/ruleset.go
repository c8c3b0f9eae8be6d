// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/extensions/v1alpha1"
)

// Limits of rule sets. Sizes are in bytes.
const (
	MaxRules = 64
	// MaxRuleExpression of one expression, MaxRuleText of all of a set.
	MaxRuleExpression = 4 << 10
	MaxRuleText       = 128 << 10
	// MaxRuleErrors in a status, MaxRuleMessage of one of them.
	MaxRuleErrors  = 16
	MaxRuleMessage = 512
)

// kindName is what Kubernetes lets a kind be called.
var kindName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// ruleSet is one of the two kinds.
type ruleSet interface {
	v1alpha1.RuleSet
	metav1.ObjectMetaAccessor
}

// RuleSet checks the shape of one that is to be created or updated. Whether its
// expressions compile is said in its status: a set that fails there harms nothing, and
// one that an older hub accepted must stay editable.
func RuleSet[T ruleSet](set T) field.ErrorList {
	errs := objectName(set.GetName(), apivalidation.NameIsDNSSubdomain)
	p := field.NewPath("spec", "rules")
	spec := set.RuleSetSpec()
	if len(spec.Rules) == 0 {
		return append(errs, field.Required(p, "at least one rule"))
	}
	if n := len(spec.Rules); n > MaxRules {
		return append(errs, field.TooMany(p, n, MaxRules))
	}
	seen := map[[2]string]bool{}
	size := 0
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		errs = append(errs, healthRule(rule, p.Index(i))...)
		if kind := [2]string{rule.Group, rule.Kind}; seen[kind] {
			errs = append(errs, field.Duplicate(p.Index(i).Child("kind"), rule.Kind))
		} else {
			seen[kind] = true
		}
		for _, expression := range expressions(rule) {
			size += len(expression.text)
		}
	}
	if size > MaxRuleText {
		errs = append(errs, field.Invalid(p, size, fmt.Sprintf("must have at most %d bytes of expressions", MaxRuleText)))
	}
	return errs
}

// RuleSetUpdate checks a change of the main resource.
func RuleSetUpdate[T ruleSet](set, old T) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(set.GetObjectMeta(), old.GetObjectMeta(), field.NewPath("metadata"))
	return append(errs, RuleSet(set)...)
}

// RuleSetStatusUpdate checks a change of the status: it stays of constant size.
func RuleSetStatusUpdate[T ruleSet](set, old T) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(set.GetObjectMeta(), old.GetObjectMeta(), field.NewPath("metadata"))
	p := field.NewPath("status", "errors")
	status := set.RuleSetStatus()
	if n := len(status.Errors); n > MaxRuleErrors {
		return append(errs, field.TooMany(p, n, MaxRuleErrors))
	}
	for i := range status.Errors {
		if len(status.Errors[i].Message) > MaxRuleMessage {
			errs = append(errs, field.TooLong(p.Index(i).Child("message"), "", MaxRuleMessage))
		}
	}
	return errs
}

// RuleSetWarnings tells of rules that can never decide.
func RuleSetWarnings[T ruleSet](set T) []string {
	var warnings []string
	all := map[string]int{}
	rules := set.RuleSetSpec().Rules
	for i := range rules {
		rule := &rules[i]
		if before, ok := all[rule.Group]; ok {
			warnings = append(warnings, fmt.Sprintf("spec.rules[%d]: never used, since spec.rules[%d] is for all kinds of its group and stands before it", i, before))
			continue
		}
		if rule.Kind == v1alpha1.AllKinds {
			all[rule.Group] = i
		}
	}
	return warnings
}

func healthRule(rule *v1alpha1.HealthRule, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Group != "" {
		for _, msg := range kubevalidation.IsDNS1123Subdomain(rule.Group) {
			errs = append(errs, field.Invalid(p.Child("group"), rule.Group, msg))
		}
	}
	switch {
	case rule.Kind == "":
		errs = append(errs, field.Required(p.Child("kind"), `a kind, or "*" for all of the group`))
	case rule.Kind != v1alpha1.AllKinds && !kindName.MatchString(rule.Kind):
		errs = append(errs, field.Invalid(p.Child("kind"), rule.Kind, `must be a kind, as in Deployment, or "*" for all of the group`))
	}
	judges := false
	for _, expression := range expressions(rule) {
		judges = judges || expression.text != "" && expression.name != "message"
		if len(expression.text) > MaxRuleExpression {
			errs = append(errs, field.TooLong(p.Child(expression.name), "", MaxRuleExpression))
		}
	}
	if !judges {
		errs = append(errs, field.Required(p, "at least one of healthy, progressing, degraded and suspended"))
	}
	return errs
}

type expression struct{ name, text string }

func expressions(rule *v1alpha1.HealthRule) []expression {
	return []expression{
		{"healthy", rule.Healthy}, {"progressing", rule.Progressing}, {"degraded", rule.Degraded},
		{"suspended", rule.Suspended}, {"message", rule.Message},
	}
}
