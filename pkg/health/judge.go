// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
)

// Judge judges a live object by the built-in rules, and where there is none for its kind by
// conventions. It looks at nothing but the object, gives the same answer for the same one
// at any time, and does not change it.
func Judge(live map[string]any) Verdict {
	o := object(live)
	if v, going := terminating(o); going {
		return v
	}
	group, kind := o.groupKind()
	rule := builtin[groupKind{group, kind}]
	if rule == nil {
		return clipped(byConvention(o))
	}
	if v, lags := behind(o); lags {
		if fault := unobserved[groupKind{group, kind}]; fault != nil {
			if w, is := fault(o); is {
				return clipped(w)
			}
		}
		if w, is := stopped(o, rule); is {
			return clipped(w)
		}
		return v
	}
	return clipped(rule(o))
}

// unobserved are faults of kinds whose controllers say that they failed and leave
// observedGeneration as it was: such a status will never be about this generation.
var unobserved = map[groupKind]func(object) (Verdict, bool){
	{"autoscaling", "HorizontalPodAutoscaler"}: cannotScale,
	{"policy", "PodDisruptionBudget"}:          cannotCount,
}

// stopped: the specification alone says that the object is stopped. Controllers of several
// kinds do not look at such a one any more, and its status stays about an older generation.
func stopped(o object, r rule) (Verdict, bool) {
	bare := maps.Clone(o)
	delete(bare, "status")
	v := r(bare)
	return v, v.State == Suspended
}

// terminating says that an object is being deleted.
func terminating(o object) (Verdict, bool) {
	if o.meta().text("deletionTimestamp") == "" {
		return Verdict{}, false
	}
	message := "is being deleted"
	var finalizers []string
	for _, item := range o.meta().list("finalizers") {
		if name, ok := item.(string); ok {
			finalizers = append(finalizers, name)
		}
	}
	if len(finalizers) > 0 {
		message += ", held by finalizer " + named(finalizers)
	}
	return clipped(Verdict{State: Terminating, Message: message}), true
}

// behind says that the status speaks of an older generation than the object is of. A newer
// one counts as observed: what a backup brought back, with its status, under a generation
// that begins anew would wait for ever for a controller that never counts down, and some
// write another number there.
func behind(o object) (Verdict, bool) {
	generation, has := o.meta().number("generation")
	observed, told := o.status().number("observedGeneration")
	if !has || !told || observed >= generation {
		return Verdict{}, false
	}
	return progressing("generation %d is not observed yet, the status is about %d", generation, observed), true
}

func healthy() Verdict { return Verdict{State: Healthy} }

func progressing(format string, args ...any) Verdict {
	return Verdict{State: Progressing, Message: fmt.Sprintf(format, args...)}
}

func degraded(format string, args ...any) Verdict {
	return Verdict{State: Degraded, Message: fmt.Sprintf(format, args...)}
}

// failed is a Degraded that does not pass by itself.
func failed(format string, args ...any) Verdict {
	return Verdict{State: Degraded, Message: fmt.Sprintf(format, args...), Final: true}
}

func suspended(format string, args ...any) Verdict {
	return Verdict{State: Suspended, Message: fmt.Sprintf(format, args...)}
}
