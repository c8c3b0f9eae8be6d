// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"maps"

	"kumodo.io/convoy/pkg/expression"
)

// Bound are rules with the facts of one Release on one cluster. It can be used by many at
// once; a nil one selects nothing.
type Bound struct {
	rules *Rules
	facts map[string]any
}

// Bind gives rules the facts that they read, by path, as Check names them.
func (r *Rules) Bind(facts map[string]string) *Bound {
	return &Bound{rules: r, facts: expression.Facts(facts)}
}

// Judge judges a live object by the rules of users; false when none is for its kind. The
// object is not changed.
func (r *Rules) Judge(live map[string]any, facts map[string]string) (Verdict, bool) {
	return r.Bind(facts).Judge(live)
}

// Judge judges a live object by the rules of users; false when none is for its kind. The
// object is not changed. One that is being deleted is Terminating whatever rules say.
func (b *Bound) Judge(live map[string]any) (Verdict, bool) {
	if b == nil {
		return Verdict{}, false
	}
	o := object(live)
	group, kind := o.groupKind()
	rule := b.rules.find(group, kind)
	if rule == nil {
		return Verdict{}, false
	}
	if v, going := terminating(o); going {
		return v, true
	}
	return clipped(rule.judge(b.variables(o, group, kind))), true
}

// Selects says whether any rule is for a kind.
func (b *Bound) Selects(group, kind string) bool { return b != nil && b.rules.Selects(group, kind) }

// variables of one object. Values of Secrets are not shown: what rules say is told.
func (b *Bound) variables(o object, group, kind string) map[string]any {
	if group == "" && kind == "Secret" {
		o = masked(o)
	}
	return map[string]any{"object": map[string]any(o), "cluster": b.facts["cluster"], "self": b.facts["self"]}
}

// masked is a Secret without its values.
func masked(o object) object {
	out := maps.Clone(o)
	for _, field := range []string{"data", "stringData"} {
		values, ok := out[field].(map[string]any)
		if !ok {
			delete(out, field)
			continue
		}
		hidden := make(map[string]any, len(values))
		for key := range values {
			hidden[key] = "***"
		}
		out[field] = hidden
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "annotations") // one of them may repeat all that was applied
		out["metadata"] = meta
	}
	return out
}

// judge tries the expressions in their order; the first that is true decides.
func (c *compiled) judge(variables map[string]any) Verdict {
	if err := c.compile(); err != nil {
		return c.failed(err)
	}
	state := Healthy
	if c.programs[messagePart-1] != nil {
		state = Progressing // it says when it is healthy, and that is not so
	}
	for i, part := range parts[:messagePart] {
		if c.programs[i] == nil {
			continue
		}
		is, err := c.programs[i].Bool(variables)
		if err != nil {
			return c.failed(fieldError(part.field, err))
		}
		if is {
			state = part.state
			break
		}
	}
	if state == Healthy {
		return Verdict{State: Healthy}
	}
	// Who writes a rule knows what is no moment's fault.
	v := Verdict{State: state, Final: state == Degraded}
	if c.programs[messagePart] == nil {
		v.Message = "by health rule " + c.name()
		return v
	}
	text, err := c.programs[messagePart].Text(variables)
	if err != nil {
		text = "by health rule " + c.name() + ", whose message fails: " + err.Error()
	}
	v.Message = cmp.Or(text, "by health rule "+c.name())
	return v
}

func (c *compiled) name() string { return c.Set + " for " + c.Kind }

func (c *compiled) failed(err error) Verdict {
	return Verdict{State: Unknown, Message: "health rule " + c.name() + " fails: " + err.Error()}
}

func fieldError(field string, err error) error { return &partError{field: field, err: err} }

// partError names the expression of a rule that failed.
type partError struct {
	field string
	err   error
}

func (e *partError) Error() string { return e.field + ": " + e.err.Error() }
func (e *partError) Unwrap() error { return e.err }
