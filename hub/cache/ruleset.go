// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/types"

	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
)

// makeRules makes the stores of both kinds of rule sets.
func (c *Cache) makeRules(options Options, complete func()) {
	c.rules = newKind(extensionsv1alpha1.KindHealthRuleSet, options.RuleSets,
		func(in *extensionsv1alpha1.HealthRuleSet) *extensionsv1alpha1.HealthRuleSet { out := *in; return &out },
		map[string]func(*extensionsv1alpha1.HealthRuleSet) indexKey{
			byNamespace: func(set *extensionsv1alpha1.HealthRuleSet) indexKey { return indexKey{namespace: set.Namespace} },
		})
	c.global = newKind(extensionsv1alpha1.KindGlobalHealthRuleSet, options.GlobalRuleSets,
		func(in *extensionsv1alpha1.GlobalHealthRuleSet) *extensionsv1alpha1.GlobalHealthRuleSet {
			out := *in
			return &out
		}, nil)
	c.rules.onComplete, c.global.onComplete = complete, complete
}

// RuleSet by namespace and name; without a namespace it is a global one.
func (c *Cache) RuleSet(key types.NamespacedName) (extensionsv1alpha1.RuleSet, bool) {
	switch {
	case c.rules == nil:
		return nil, false
	case key.Namespace == "":
		if found, ok := c.global.get(key); ok {
			return found, true
		}
	default:
		if found, ok := c.rules.get(key); ok {
			return found, true
		}
	}
	return nil, false // not a nil object in an interface
}

// RuleSets lists those of a namespace, in no order; without a namespace the global ones.
func (c *Cache) RuleSets(namespace string) []extensionsv1alpha1.RuleSet {
	switch {
	case c.rules == nil:
		return nil
	case namespace == "":
		return ruleSets(c.global.list())
	}
	return ruleSets(c.rules.indexed(byNamespace, indexKey{namespace: namespace}))
}

// AllRuleSets lists those of all namespaces and the global ones, in no order.
func (c *Cache) AllRuleSets() []extensionsv1alpha1.RuleSet {
	if c.rules == nil {
		return nil
	}
	return append(ruleSets(c.rules.list()), ruleSets(c.global.list())...)
}

func ruleSets[T extensionsv1alpha1.RuleSet](list []T) []extensionsv1alpha1.RuleSet {
	out := make([]extensionsv1alpha1.RuleSet, 0, len(list))
	for _, set := range list {
		out = append(out, set)
	}
	return out
}

// OnRuleSet adds a handler of changes of both kinds, as OnRelease.
func (c *Cache) OnRuleSet(handler func(old, next extensionsv1alpha1.RuleSet)) {
	if c.rules == nil {
		return
	}
	onRuleSet(c.rules, handler)
	onRuleSet(c.global, handler)
}

func onRuleSet[T interface {
	object
	extensionsv1alpha1.RuleSet
}](k *kind[T], handler func(old, next extensionsv1alpha1.RuleSet)) {
	var none T
	k.on(func(old, next T) {
		var was, is extensionsv1alpha1.RuleSet
		if old != none {
			was = old
		}
		if next != none {
			is = next
		}
		handler(was, is)
	})
}

// PutRuleSet takes over an object that was just written.
func (c *Cache) PutRuleSet(set extensionsv1alpha1.RuleSet) {
	if c.rules == nil {
		return
	}
	switch set := set.(type) {
	case *extensionsv1alpha1.HealthRuleSet:
		c.rules.put(set)
	case *extensionsv1alpha1.GlobalHealthRuleSet:
		c.global.put(set)
	}
}
