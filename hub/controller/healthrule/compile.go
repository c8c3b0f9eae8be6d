// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/pkg/health"
)

// compiled is what became of one generation of a set.
type compiled struct {
	// id tells it from any other: kind, name, UID and generation.
	id   string
	name string
	once sync.Once

	// Made once, when somebody asks.
	rules  []usable
	errors []v1alpha1.RuleError
	// failed counts the rules that are left out, beyond those that errors names too.
	failed int
}

// usable is a rule that compiles.
type usable struct {
	rule  health.Rule
	reads []string
}

// books are the sets that were looked at, by kind and name.
type books struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*compiled
	// made is called for each generation that was compiled.
	made func()
}

// of gives a set as compiled. A generation is compiled once, however many ask.
func (b *books) of(set v1alpha1.RuleSet) *compiled {
	key := keyOf(set)
	id := fmt.Sprintf("%s@%s.%d", key, set.GetUID(), set.GetGeneration())
	b.mu.Lock()
	entry := b.known[key]
	if entry == nil || entry.id != id {
		entry = &compiled{id: id, name: title(key)}
		b.known[key] = entry
	}
	b.mu.Unlock()
	entry.once.Do(func() {
		entry.compile(set.RuleSetSpec())
		b.made()
	})
	return entry
}

func (b *books) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, key)
}

// title names a set where it is read: namespace/name, or the name of a global one.
func title(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

func keyOf(set v1alpha1.RuleSet) types.NamespacedName {
	return types.NamespacedName{Namespace: set.GetNamespace(), Name: set.GetName()}
}

// compile leaves out a rule with an expression that cannot be used: half a rule would
// judge as nobody meant it to.
func (c *compiled) compile(spec *v1alpha1.HealthRuleSetSpec) {
	facts := map[string]bool{}
	for i := range spec.Rules {
		given := &spec.Rules[i]
		rule := health.Rule{
			Set: c.name, Group: given.Group, Kind: given.Kind, Healthy: given.Healthy, Progressing: given.Progressing,
			Degraded: given.Degraded, Suspended: given.Suspended, Message: given.Message,
		}
		at := fmt.Sprintf("rules[%d]", i)
		faults, reads := health.Check(rule)
		if len(faults) == 0 && !fits(facts, reads, maxSetFacts) {
			c.fail(at, fmt.Sprintf("the rules of a set may read at most %d values of cluster and self", maxSetFacts))
			c.failed++
			continue
		}
		for _, fault := range faults {
			c.fail(at+"."+fault.Field, fault.Err.Error())
		}
		if len(faults) > 0 {
			c.failed++
			continue
		}
		c.rules = append(c.rules, usable{rule: rule, reads: reads})
	}
}

// fail notes what is wrong with a field, if there is room for it.
func (c *compiled) fail(field, message string) {
	if len(c.errors) < maxErrors {
		c.errors = append(c.errors, v1alpha1.RuleError{Field: field, Message: clip(message)})
	}
}

// fits adds reads to facts if there are not too many by that.
func fits(facts map[string]bool, reads []string, limit int) bool {
	more := 0
	for _, path := range reads {
		if !facts[path] {
			more++
		}
	}
	if len(facts)+more > limit {
		return false
	}
	for _, path := range reads {
		facts[path] = true
	}
	return true
}

// clip cuts a message to what a status may hold.
func clip(text string) string {
	if len(text) <= maxErrorBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorBytes-3], "") + "..."
}
