// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kumodo.io/convoy/pkg/expression"
)

// Document is the layer of health rules that orders name, as JSON: the rules of all sets
// that a Release uses, in the order of precedence.
type Document struct {
	Rules []Rule `json:"rules"`
}

// Rule is one rule of a document. The expressions are CEL over object, cluster and self;
// those that are empty do not count.
type Rule struct {
	// Set that it comes from: namespace/name, or the name of a global one.
	Set   string `json:"set"`
	Group string `json:"group"`
	// Kind, or "*" for all of the group.
	Kind        string `json:"kind"`
	Healthy     string `json:"healthy,omitempty"`
	Progressing string `json:"progressing,omitempty"`
	Degraded    string `json:"degraded,omitempty"`
	Suspended   string `json:"suspended,omitempty"`
	Message     string `json:"message,omitempty"`
}

// anyKind selects all kinds of a group.
const anyKind = "*"

// variables that the expressions of a rule know.
var variables = []string{"object", "cluster", "self"}

// parts of a rule, in the order in which they are tried.
var parts = [...]struct {
	field string
	state State
	kind  expression.Type
	text  func(*Rule) string
}{
	{"degraded", Degraded, expression.Bool, func(r *Rule) string { return r.Degraded }},
	{"suspended", Suspended, expression.Bool, func(r *Rule) string { return r.Suspended }},
	{"progressing", Progressing, expression.Bool, func(r *Rule) string { return r.Progressing }},
	{"healthy", Healthy, expression.Bool, func(r *Rule) string { return r.Healthy }},
	{"message", Unknown, expression.Text, func(r *Rule) string { return r.Message }},
}

// messagePart is the index of the message in parts.
const messagePart = len(parts) - 1

// FieldError is what is wrong with one expression of a rule.
type FieldError struct {
	// Field, as in degraded.
	Field string
	// Err wraps an error of pkg/expression.
	Err error
}

// Check compiles the expressions of a rule: what is wrong with each, and which facts of
// cluster and self they read, sorted.
func Check(rule Rule) (faults []FieldError, reads []string) {
	all := map[string]bool{}
	for _, part := range parts {
		text := part.text(&rule)
		if text == "" {
			continue
		}
		program, err := expression.Compile(text, part.kind, variables...)
		if err != nil {
			faults = append(faults, FieldError{Field: part.field, Err: err})
			continue
		}
		for _, path := range program.Reads() {
			all[path] = true
		}
	}
	return faults, slices.Sorted(maps.Keys(all))
}

// Rules are those of a document. They can be used by many at once.
type Rules struct {
	rules []compiled
	// exact and groups give the first rule for a kind, and for all of a group.
	exact  map[groupKind]int
	groups map[string]int
}

type groupKind struct{ group, kind string }

// compiled is a rule whose expressions are compiled when the first object of its kind is
// judged: most of a fleet's rules are for kinds that a cluster does not have.
type compiled struct {
	Rule
	once     *sync.Once
	programs [len(parts)]*expression.Program
	err      error
}

// Parse reads a document. What is wrong with a single rule is no error of it: it is said
// of the objects which that rule judges. The error wraps ErrDocument.
func Parse(document []byte) (*Rules, error) {
	if len(document) > MaxDocument {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrDocument, len(document), MaxDocument)
	}
	var read Document
	if err := json.Unmarshal(document, &read); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	if len(read.Rules) > MaxRules {
		return nil, fmt.Errorf("%w: %d rules, at most %d", ErrDocument, len(read.Rules), MaxRules)
	}
	rules := &Rules{
		rules: make([]compiled, len(read.Rules)), exact: map[groupKind]int{}, groups: map[string]int{},
	}
	for i, rule := range read.Rules {
		rules.rules[i] = compiled{Rule: rule, once: new(sync.Once)}
		if rule.Kind == anyKind {
			if _, known := rules.groups[rule.Group]; !known {
				rules.groups[rule.Group] = i
			}
			continue
		}
		gk := groupKind{rule.Group, rule.Kind}
		if _, known := rules.exact[gk]; !known {
			rules.exact[gk] = i
		}
	}
	return rules, nil
}

// Selects says whether any rule is for a kind.
func (r *Rules) Selects(group, kind string) bool { return r.find(group, kind) != nil }

// find gives the rule that judges a kind; nil: none.
func (r *Rules) find(group, kind string) *compiled {
	if r == nil {
		return nil
	}
	first, known := r.exact[groupKind{group, kind}]
	if of, all := r.groups[group]; all && (!known || of < first) {
		first, known = of, true
	}
	if !known {
		return nil
	}
	return &r.rules[first]
}

// compile compiles a rule once.
func (c *compiled) compile() error {
	c.once.Do(func() {
		for i, part := range parts {
			text := part.text(&c.Rule)
			if text == "" {
				continue
			}
			program, err := expression.Compile(text, part.kind, variables...)
			if err != nil {
				c.err = errors.Join(c.err, fmt.Errorf("%s: %w", part.field, err))
				continue
			}
			c.programs[i] = program
		}
	})
	return c.err
}
