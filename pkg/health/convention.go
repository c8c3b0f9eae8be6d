// SPDX-License-Identifier: Apache-2.0

package health

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// byConvention judges an object of a kind that nothing is known of: by kstatus, which
// knows observedGeneration and the conditions Reconciling, Stalled and Ready.
func byConvention(o object) Verdict {
	if o.status() == nil {
		return healthy() // no controller says anything of it
	}
	if v, lags := behind(o); lags {
		return v
	}
	for _, c := range conditionsOf(o) {
		if c.about(o) {
			continue
		}
		switch c.kind {
		case "Ready", "Reconciling", "Stalled":
			generation, _ := o.meta().number("generation")
			return progressing("condition %s is about generation %d, not %d", c.kind, c.generation, generation)
		}
	}
	if v, is := crossplane(o); is {
		return v
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: tidied(o)})
	if err != nil {
		return Verdict{State: Unknown, Message: err.Error()}
	}
	message := saidBy(o, result)
	switch result.Status {
	case status.CurrentStatus:
		return healthy()
	case status.FailedStatus:
		return failed("%s", message)
	case status.TerminatingStatus:
		return Verdict{State: Terminating, Message: message}
	case status.InProgressStatus, status.NotFoundStatus:
		return progressing("%s", message)
	case status.UnknownStatus:
	}
	return Verdict{State: Unknown, Message: message}
}

// saidBy gives the reason and the message of the condition that kstatus went by.
func saidBy(o object, result *status.Result) string {
	for _, c := range conditionsOf(o) {
		switch {
		case c.status == "True" && (c.kind == "Reconciling" || c.kind == "Stalled"),
			c.status != "True" && c.kind == "Ready":
			return c.why()
		}
	}
	return joinedFirst(result.Message, "status is "+string(result.Status))
}

// tidied is an object without the parts of a status that are not of the shape that
// every controller keeps to, and that would make all of it unreadable.
//
// Nor has it observedGeneration: behind has judged that, and kstatus takes one that is
// ahead for one that lags.
func tidied(o object) object {
	from := o.status()
	to := make(map[string]any, 1)
	var kept []any
	for _, item := range from.list("conditions") {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		clean := map[string]any{}
		for _, key := range []string{"type", "status", "reason", "message"} {
			if text, ok := c[key].(string); ok {
				clean[key] = text
			}
		}
		if clean["type"] != nil && clean["status"] != nil {
			kept = append(kept, clean)
		}
	}
	if kept != nil {
		to["conditions"] = kept
	}
	out := maps.Clone(o)
	out["status"] = to
	meta := map[string]any{}
	if n, ok := o.meta().number("generation"); ok {
		meta["generation"] = n
	}
	out["metadata"] = meta
	return out
}
