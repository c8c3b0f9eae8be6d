// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"kumodo.io/convoy/pkg/manifest"
)

// Inside a wave objects are deleted against the order of kinds, in steps. What a
// finalizer holds has somebody who must act before it is gone: often an operator whose
// workload, account and rights are of the same wave. So kinds that are none of the
// cluster's own go before workloads, and so does anything else that holds a finalizer;
// and no step is begun while something of the one before is held by one. What holds no
// finalizer is never waited for between steps.

// Steps of a deletion that are not those of an apply; the higher goes first. Policies
// and webhooks have higher ones (see tierOf): they must not judge the deletion of what
// their server would have to be there for.
const (
	stepCustom = 10 // what others act on: kinds without a place of their own, and what holds a finalizer
	stepHeld   = 9  // workloads that hold a finalizer: before the others, which may have to lift it
)

// deleteStep says when in its wave an object is deleted. held: it holds a finalizer.
func deleteStep(id manifest.Identity, held bool) int {
	tier := tierOf(id.Group, id.Kind)
	switch {
	case tier < 2, tier > 5, isClaim(id), isVolume(id):
		// With a namespace or a definition goes what is in it, and volumes are held by
		// those who use them: none of these comes earlier than its kind.
		return tier
	case runsPods(id):
		if held {
			return stepHeld
		}
		return tier
	case held, isUnplaced(id), id.Group == "networking.k8s.io" && id.Kind == "Ingress":
		return stepCustom
	}
	return tier
}

// isUnplaced says whether a kind has no place of its own in the order of kinds.
func isUnplaced(id manifest.Identity) bool {
	return manifest.KindOrder(id.Group, id.Kind) == manifest.KindOrder("", "")
}

func isVolume(id manifest.Identity) bool { return id.Group == "" && id.Kind == "PersistentVolume" }

// runsPods says whether an object may be the program that lifts finalizers.
func runsPods(id manifest.Identity) bool {
	switch id.Group {
	case "":
		return id.Kind == "Pod" || id.Kind == "ReplicationController"
	case "apps":
		return id.Kind != "ControllerRevision"
	case "batch":
		return true
	}
	return false
}

// clusterFinalizers are lifted by the cluster itself, which needs nothing of a Release
// for it.
var clusterFinalizers = []string{
	"foregroundDeletion", "orphan", "kubernetes",
	"kubernetes.io/pv-protection", "kubernetes.io/pvc-protection",
	"batch.kubernetes.io/job-tracking",
	"customresourcecleanup.apiextensions.k8s.io",
}

// heldByOthers says whether a finalizer is among these that somebody lifts who may be of
// the Release.
func heldByOthers(finalizers []string) bool {
	return slices.ContainsFunc(finalizers, func(f string) bool { return !slices.Contains(clusterFinalizers, f) })
}

// finalized says whether a live object holds such a finalizer.
func finalized(live map[string]any) bool {
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return false
	}
	list, ok := metadata["finalizers"].([]any)
	if !ok {
		return false
	}
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = text(name)
	}
	return heldByOthers(names)
}

// deleteStep gives the place of an object in the deletion of its wave, by what was seen
// of it last.
func (r *release) deleteStep(o *object) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return deleteStep(o.id, o.held)
}

// blocked names what the deletion of a wave waits for: what holds the steps that follow,
// or else the first that is there; and says how many more there are.
func blocked(open []*deletion) string {
	first, more, later := open[0], -1, 0
	for _, d := range open {
		if d.later {
			later++
			continue
		}
		more++
		if d.holds && !first.holds {
			first = d
		}
	}
	out := clip(fmt.Sprintf("waiting for %s to be gone: %s", first.o.id, first.why), maxMessage-60)
	if more > 0 {
		out += fmt.Sprintf(" (and %d more)", more)
	}
	if later > 0 {
		out += fmt.Sprintf("; %d more are deleted after it", later)
	}
	return out
}
