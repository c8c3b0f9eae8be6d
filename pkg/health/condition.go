// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// condition of a status, as far as it is of the usual shape.
type condition struct {
	kind, status, reason, message string
	generation                    int64
	dated                         bool   // it says what generation it is about
	changed                       string // when its status did
}

// conditionsOf lists the conditions of a status. What is of another shape is left out.
func conditionsOf(o object) []condition {
	list := o.status().list("conditions")
	if len(list) == 0 {
		return nil
	}
	out := make([]condition, 0, len(list))
	for _, item := range list {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		c := object(raw)
		one := condition{kind: c.text("type"), status: c.text("status"), reason: c.text("reason"), message: c.text("message")}
		if one.kind == "" || one.status == "" {
			continue
		}
		one.generation, one.dated = c.number("observedGeneration")
		one.changed = c.text("lastTransitionTime")
		out = append(out, one)
	}
	return out
}

// find gives the first condition of a type.
func find(conditions []condition, kind string) (condition, bool) {
	for _, c := range conditions {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{}, false
}

// isTrue says that there is a condition of a type, and that it is True.
func isTrue(conditions []condition, kind string) (condition, bool) {
	c, there := find(conditions, kind)
	return c, there && c.status == "True"
}

// about says whether a condition speaks of the object as it is now.
func (c condition) about(o object) bool {
	if !c.dated || c.generation == 0 {
		return true
	}
	generation, has := o.meta().number("generation")
	return !has || c.generation >= generation
}

// why gives what a condition says of itself.
func (c condition) why() string {
	switch {
	case c.message == "" && c.reason == "":
		return "condition " + c.kind + " is " + c.status
	case c.message == "":
		return c.reason
	case c.reason == "":
		return c.message
	}
	return c.reason + ": " + c.message
}

// since gives when the status of a condition changed; zero: it does not say.
func (c condition) since() time.Time {
	at, err := time.Parse(time.RFC3339, c.changed)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
