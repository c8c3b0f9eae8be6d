// SPDX-License-Identifier: Apache-2.0

package health

import "strings"

// crossplane judges what Crossplane manages, claims and composites: conditions Synced and
// Ready together. Ready comes only when the object outside has been looked at, so that one
// that cannot be made has Synced alone. False for what is none of these: other projects use
// the word Synced, too.
func crossplane(o object) (Verdict, bool) {
	conditions := conditionsOf(o)
	synced, there := find(conditions, "Synced")
	if !there {
		return Verdict{}, false
	}
	ready, told := find(conditions, "Ready")
	switch {
	case synced.reason == "ReconcilePaused":
		return suspended("%s", synced.why()), true
	case !told && !ofCrossplane(o, synced):
		return Verdict{}, false
	case !synced.about(o) || told && !ready.about(o):
		return progressing("its conditions are about an older generation"), true
	case synced.status == "False":
		return degraded("%s", synced.why()), true
	case !told:
		return progressing("condition Ready is not there yet"), true
	case ready.status == "True":
		return healthy(), true
	case ready.status == "False" && ready.reason == "Unavailable":
		return degraded("%s", ready.why()), true
	}
	return progressing("%s", ready.why()), true
}

// reasons that Crossplane gives for Synced, and nobody else does.
var crossplaneReasons = set("ReconcileSuccess", "ReconcileError", "ReconcilePaused")

// fields of a specification that only what Crossplane manages, its claims and its
// composites have.
var crossplaneFields = []string{"forProvider", "providerConfigRef", "compositionRef", "compositionSelector", "compositeDeletePolicy", "crossplane"}

// ofCrossplane says whether an object that is Synced and has no Ready is one of
// Crossplane's: by the reason, by the group, or by its specification.
func ofCrossplane(o object, synced condition) bool {
	if crossplaneReasons[synced.reason] {
		return true
	}
	group, _ := o.groupKind()
	if strings.HasSuffix("."+group, ".crossplane.io") || strings.HasSuffix("."+group, ".upbound.io") {
		return true
	}
	for _, field := range crossplaneFields {
		if _, there := o.spec()[field]; there {
			return true
		}
	}
	return false
}
