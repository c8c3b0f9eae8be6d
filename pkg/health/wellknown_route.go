// SPDX-License-Identifier: Apache-2.0

package health

// parentRef names what a route or policy wants to be attached to, with what is left out
// filled in.
type parentRef struct {
	group, kind, namespace, name string
	section                      string // empty: all of the parent
	port                         int64  // 0: every one
}

func parentOf(o, ref object) parentRef {
	p := parentRef{
		group: "gateway.networking.k8s.io", kind: joinedFirst(ref.text("kind"), "Gateway"), name: ref.text("name"),
		namespace: joinedFirst(ref.text("namespace"), o.meta().text("namespace")), section: ref.text("sectionName"), port: ref.count("port"),
	}
	if group, told := ref["group"].(string); told {
		p.group = group // the empty one is that of a Service
	}
	return p
}

// around says whether two are about the same parent, where one may name no section or port.
func (p parentRef) around(other parentRef) bool {
	section := p.section == other.section || p.section == "" || other.section == ""
	port := p.port == other.port || p.port == 0 || other.port == 0
	return section && port && p.group == other.group && p.kind == other.kind && p.namespace == other.namespace && p.name == other.name
}

// route: each parent that the specification names has to say what it thinks of it. What a
// parent has said that is not named any more counts for nothing. Gateways that take routes
// by default are not named.
func route(o object) Verdict {
	wanted := parentsOf(o)
	byDefault := joinedFirst(o.spec().text("useDefaultGateways"), "None") != "None"
	if len(wanted) == 0 && !byDefault {
		return healthy() // it waits for nobody
	}
	waiting, answered, answers := healthy(), make([]bool, len(wanted)), 0
	for _, item := range o.status().list("parents") {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		ref := parentOf(o, object(raw).fields("parentRef"))
		if !answer(ref, wanted, answered) && !byDefault {
			continue
		}
		answers++
		switch v := ofParent(o, raw, ref.name); v.State {
		case Healthy:
		case Degraded:
			return v
		default:
			waiting = v
		}
	}
	switch {
	case waiting.State != Healthy:
		return waiting
	case answers == 0:
		return progressing("no gateway has taken it yet")
	}
	for i, ref := range wanted {
		if !answered[i] {
			return progressing("gateway %s has not answered yet", orNone(ref.name))
		}
	}
	return waiting
}

func parentsOf(o object) []parentRef {
	var out []parentRef
	for _, item := range o.spec().list("parentRefs") {
		if raw, ok := item.(map[string]any); ok {
			out = append(out, parentOf(o, raw))
		}
	}
	return out
}

// answer notes who is answered by what a parent says; false: nobody asked it. Some
// controllers leave out the section, or answer for each one.
func answer(ref parentRef, wanted []parentRef, answered []bool) bool {
	found := false
	for i, want := range wanted {
		if want == ref {
			answered[i], found = true, true
		}
	}
	if found {
		return true
	}
	for i, want := range wanted {
		if want.around(ref) {
			answered[i], found = true, true
		}
	}
	return found
}

// attachedPolicy: what a policy is attached to says by itself what it thinks of it.
func attachedPolicy(o object) Verdict {
	waiting, answers := healthy(), 0
	for _, item := range o.status().list("ancestors") {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		answers++
		switch v := ofParent(o, raw, object(raw).fields("ancestorRef").text("name")); v.State {
		case Healthy:
		case Degraded:
			return v
		default:
			waiting = v
		}
	}
	if answers == 0 {
		return progressing("no gateway has taken it yet")
	}
	return waiting
}

func ofParent(o object, parent map[string]any, name string) Verdict {
	// The conditions have the usual shape, only deeper.
	as := object{"metadata": o["metadata"], "status": parent}
	v := byCondition(as, "Accepted", butProgressing("Pending"))
	for _, c := range conditionsOf(as) {
		switch {
		case v.State != Healthy || !c.about(o):
		case c.kind == "ResolvedRefs" && c.status == "False", c.kind == "PartiallyInvalid" && c.status == "True":
			v = degraded("%s", c.why())
		}
	}
	if v.State != Healthy {
		v.Message = "gateway " + orNone(name) + ": " + v.Message
	}
	return v
}
