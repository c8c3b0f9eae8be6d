// SPDX-License-Identifier: Apache-2.0

package health

// stillProgressing reads a condition that is not True as work in progress.
func stillProgressing(c condition) Verdict { return progressing("%s", c.why()) }

// meansDegraded reads a condition that is False as a fault, and one that is Unknown as work
// in progress.
func meansDegraded(c condition) Verdict {
	if c.status == "False" {
		return degraded("%s", c.why())
	}
	return progressing("%s", c.why())
}

// butProgressing is meansDegraded, but for some reasons of a False that pass.
func butProgressing(reasons ...string) func(condition) Verdict {
	passing := set(reasons...)
	return func(c condition) Verdict {
		if passing[c.reason] {
			return progressing("%s", c.why())
		}
		return meansDegraded(c)
	}
}

func set(words ...string) map[string]bool {
	out := make(map[string]bool, len(words))
	for _, word := range words {
		out[word] = true
	}
	return out
}

// byCondition judges by one condition, which has to be True. Kinds that are judged so
// always get it from their controller: without it the object is new.
func byCondition(o object, kind string, otherwise func(condition) Verdict) Verdict {
	for _, c := range conditionsOf(o) {
		if c.kind != kind {
			continue
		}
		switch {
		case !c.about(o):
			return progressing("condition %s is about an older generation", kind)
		case c.status == "True":
			return healthy()
		}
		return otherwise(c)
	}
	return progressing("condition %s is not there yet", kind)
}

// conditional is byCondition as a rule.
func conditional(kind string, otherwise func(condition) Verdict) rule {
	return func(o object) Verdict { return byCondition(o, kind, otherwise) }
}

// pausedBy is a rule before which it is asked whether somebody has stopped the object.
func pausedBy(stopped func(object) (string, bool), r rule) rule {
	return func(o object) Verdict {
		if why, is := stopped(o); is {
			return suspended("%s", why)
		}
		return r(o)
	}
}

// suspendField is what many kinds call it in their spec.
func suspendField(name string) func(object) (string, bool) {
	return func(o object) (string, bool) { return "spec." + name + " is true", o.spec().is(name) }
}

// annotated: an annotation stops the object, with one of some values; any when none is given.
func annotated(key string, values ...string) func(object) (string, bool) {
	wanted := set(values...)
	return func(o object) (string, bool) {
		notes := o.meta().fields("annotations")
		_, there := notes[key]
		return "annotation " + key + " is set", there && (len(values) == 0 || wanted[notes.text(key)])
	}
}

// phases judges by a word in the status. One that is in no list is work in progress.
type phases struct {
	field                       []string // where the word is, in the status
	healthy, degraded, finished []string // finished: failed for good
	suspended                   []string
	why                         string // field of the status with a message
}

func (p phases) rule() rule {
	good, bad, over, still := set(p.healthy...), set(p.degraded...), set(p.finished...), set(p.suspended...)
	return func(o object) Verdict {
		last := len(p.field) - 1
		word := o.status().fields(p.field[:last]...).text(p.field[last])
		message := joined(word, o.status().text(p.why))
		switch {
		case word == "":
			return progressing("its status is not there yet")
		case good[word]:
			return healthy()
		case bad[word]:
			return degraded("%s", message)
		case over[word]:
			return failed("%s", message)
		case still[word]:
			return suspended("%s", message)
		}
		return progressing("%s", message)
	}
}

// wellKnown are the rules of kinds that other projects serve.
var wellKnown = merged(
	certificateKinds(), gatewayKinds(), clusterAPIKinds(), argoKinds(), fluxKinds(), monitoringKinds(),
	servingKinds(), crossplaneKinds(), dataKinds(), policyKinds(), runKinds(), openShiftKinds(),
)

// kindsOf gives several kinds of a group one rule.
func kindsOf(into map[groupKind]rule, group string, r rule, kinds ...string) {
	for _, kind := range kinds {
		into[groupKind{group, kind}] = r
	}
}
