// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// ruleSet is one of the two kinds.
type ruleSet interface {
	v1alpha1.RuleSet
	strategy.Object
}

var (
	namespaced = named(&strategy.Kind[*v1alpha1.HealthRuleSet]{
		New:     func() *v1alpha1.HealthRuleSet { return &v1alpha1.HealthRuleSet{} },
		NewList: func() runtime.Object { return &v1alpha1.HealthRuleSetList{} },
		Plural:  "healthrulesets", Singular: "healthruleset", ShortNames: []string{"hrs"},
	})
	global = named(&strategy.Kind[*v1alpha1.GlobalHealthRuleSet]{
		New:     func() *v1alpha1.GlobalHealthRuleSet { return &v1alpha1.GlobalHealthRuleSet{} },
		NewList: func() runtime.Object { return &v1alpha1.GlobalHealthRuleSetList{} },
		Plural:  "globalhealthrulesets", Singular: "globalhealthruleset", ShortNames: []string{"ghrs"},
		ClusterScoped: true,
	})
)

// named fills in what both kinds have in common. They have no shard: every hub holds
// them whole.
func named[T ruleSet](kind *strategy.Kind[T]) *strategy.Kind[T] {
	kind.Version = v1alpha1.SchemeGroupVersion
	kind.Changed = func(set, old T) bool {
		return !equality.Semantic.DeepEqual(set.RuleSetSpec(), old.RuleSetSpec())
	}
	kind.Created = func(set T) { *set.RuleSetStatus() = v1alpha1.HealthRuleSetStatus{} }
	kind.Updated = func(set, old T) { *set.RuleSetStatus() = *old.RuleSetStatus() }
	kind.Reported = func(set, old T) { *set.RuleSetSpec() = *old.RuleSetSpec() }
	kind.Validate = func(set T) field.ErrorList { return validation.RuleSet(set) }
	kind.ValidateUpdate = func(set, old T) field.ErrorList { return validation.RuleSetUpdate(set, old) }
	kind.ValidateStatus = func(set, old T) field.ErrorList { return validation.RuleSetStatusUpdate(set, old) }
	kind.Warnings = func(set T) []string { return validation.RuleSetWarnings(set) }
	return kind
}
