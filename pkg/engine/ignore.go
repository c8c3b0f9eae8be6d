// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/pkg/expression"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// A Release may leave fields to others. Such a field is applied when its object is
// made, and from then on neither compared nor changed. This file says which fields a
// rule means, spare.go what an apply looks like that leaves them alone.

// errIgnore: a rule of what is left to others cannot be kept to.
var errIgnore = errors.New("drift.ignore")

// ignoreRule is one rule, ready to be used.
type ignoreRule struct {
	number   int // from 1, as people count them
	given    tunnel.Ignore
	when     *expression.Program // nil: always
	pointers [][]string
	managers map[string]bool
}

// ignoreRules are those of an order. They do not change.
type ignoreRules []ignoreRule

// compileIgnores reads the rules of an order. One that cannot be read fails all: what
// it protects must not be touched.
func compileIgnores(given []tunnel.Ignore) (ignoreRules, error) {
	if len(given) == 0 {
		return nil, nil
	}
	if len(given) > maxIgnores {
		return nil, fmt.Errorf("%w: %d rules, at most %d", errIgnore, len(given), maxIgnores)
	}
	rules := make(ignoreRules, 0, len(given))
	for i, g := range given {
		rule := ignoreRule{number: i + 1, given: g, managers: map[string]bool{}}
		if len(g.Pointers) > maxIgnorePointers || len(g.Managers) > maxIgnoreManagers {
			return nil, fmt.Errorf("%w: rule %d names too many fields or managers", errIgnore, i+1)
		}
		for _, p := range g.Pointers {
			tokens, err := parsePointer(p)
			if err != nil {
				return nil, fmt.Errorf("%w: rule %d: %w", errIgnore, i+1, err)
			}
			rule.pointers = append(rule.pointers, tokens)
		}
		for _, m := range g.Managers {
			rule.managers[m] = true
		}
		if len(g.Pointers) == 0 && len(g.Managers) == 0 {
			rule.pointers = [][]string{{}} // the whole object
		}
		if g.When != "" {
			var err error
			if rule.when, err = expression.Compile(g.When, expression.Bool, "object"); err != nil {
				return nil, fmt.Errorf("%w: rule %d: when: %w", errIgnore, i+1, err)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// parsePointer splits a JSON pointer into its tokens.
func parsePointer(p string) ([]string, error) {
	if !strings.HasPrefix(p, "/") || len(p) > maxPointer {
		return nil, fmt.Errorf("%s is no JSON pointer", clip(strconv.Quote(p), 100))
	}
	tokens := strings.Split(p[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// selects says whether a rule is about an object, but for its when.
func (r *ignoreRule) selects(id manifest.Identity) bool {
	g := r.given
	switch {
	case g.Kind != "" && g.Kind != id.Kind,
		g.Namespace != "" && g.Namespace != id.Namespace,
		g.Name != "" && g.Name != id.Name:
		return false
	case g.Group == "*", g.Group == "" && g.Kind != "":
		return true
	}
	return g.Group == "" || g.Group == id.Group
}

// concern says whether any rule is about an object.
func (rules ignoreRules) concern(id manifest.Identity) bool {
	return slices.ContainsFunc(rules, func(r ignoreRule) bool { return r.selects(id) })
}

// spared is what of one object is left to others.
type spared struct {
	pointers [][]string
	managers map[string]bool
	// unsure says which rule could not be judged. What it would leave is left.
	unsure string
}

func (t spared) none() bool { return len(t.pointers) == 0 && len(t.managers) == 0 }

// of says what of a live object is left to others. Where the condition of a rule fails
// the rule holds: what may be somebody's is not taken.
func (rules ignoreRules) of(id manifest.Identity, live map[string]any) spared {
	var t spared
	for i := range rules {
		rule := &rules[i]
		if !rule.selects(id) {
			continue
		}
		if rule.when != nil {
			holds, err := rule.when.Bool(map[string]any{"object": shownTo(id, live)})
			if err != nil && t.unsure == "" {
				t.unsure = clip(fmt.Sprintf("rule %d of drift.ignore cannot be judged: %v", rule.number, err), maxMessage)
			}
			if err == nil && !holds {
				continue
			}
		}
		t.pointers = append(t.pointers, rule.pointers...)
		if len(rule.managers) > 0 && t.managers == nil {
			t.managers = map[string]bool{}
		}
		maps.Copy(t.managers, rule.managers)
	}
	return t
}

// shownTo is an object as an expression may see it: without the values of a Secret.
func shownTo(id manifest.Identity, live map[string]any) map[string]any {
	if !isSecret(id) {
		return live
	}
	out := maps.Clone(live)
	for _, field := range []string{"data", "stringData"} {
		values, ok := out[field].(map[string]any)
		if !ok {
			continue
		}
		masked := make(map[string]any, len(values))
		for key := range values {
			masked[key] = tunnel.Masked
		}
		out[field] = masked
	}
	return out
}

// equal says whether the same is left to others.
func (rules ignoreRules) equal(as ignoreRules) bool {
	return slices.EqualFunc(rules, as, func(a, b ignoreRule) bool {
		x, y := a.given, b.given
		return x.Group == y.Group && x.Kind == y.Kind && x.Namespace == y.Namespace && x.Name == y.Name && x.When == y.When &&
			slices.Equal(x.Pointers, y.Pointers) && slices.Equal(x.Managers, y.Managers)
	})
}

// adoptRulesLocked takes the rules of a new order. What was known of the objects that
// they are about, or were, was known by other rules: those are compared anew.
func (r *release) adoptRulesLocked(rules ignoreRules) {
	before := r.rules()
	r.ignores.Store(&rules)
	if before.equal(rules) {
		return
	}
	for id, o := range r.objects {
		if o.applied && (before.concern(id) || rules.concern(id)) {
			o.want = projection{}
		}
	}
}
