// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// health of one object.
type health uint8

const (
	healthUnknown health = iota
	healthy
	progressing
	degraded
	terminating
)

// String gives the word used in inventories and reports.
func (h health) String() string {
	switch h {
	case healthy:
		return "Healthy"
	case progressing:
		return "Progressing"
	case degraded:
		return "Degraded"
	case terminating:
		return "Terminating"
	case healthUnknown:
	}
	return "Unknown"
}

// judge computes the health of a live object, and why when it is not healthy. Odd
// shapes of a status are no reason to give up on it: what cannot be read is left
// out. live is not changed, but for those odd parts.
func judge(live map[string]any) (health, string) {
	tidyStatus(live)
	result, err := status.Compute(&unstructured.Unstructured{Object: live})
	if err != nil {
		return healthUnknown, clip(err.Error(), maxMessage)
	}
	switch result.Status {
	case status.CurrentStatus:
		return healthy, ""
	case status.FailedStatus:
		return degraded, clip(result.Message, maxMessage)
	case status.TerminatingStatus:
		return terminating, clip("is being deleted"+finalizersOf(live), maxMessage)
	case status.InProgressStatus, status.NotFoundStatus:
		return progressing, clip(result.Message, maxMessage)
	case status.UnknownStatus:
	}
	return healthUnknown, clip(result.Message, maxMessage)
}

func finalizersOf(live map[string]any) string {
	list, _, err := unstructured.NestedStringSlice(live, "metadata", "finalizers")
	if err != nil || len(list) == 0 {
		return ""
	}
	return ", held by finalizer " + joinFields(list)
}

// tidyStatus drops the parts of a status that are not of the shape that every
// controller keeps to, and that would make all of it unreadable.
func tidyStatus(live map[string]any) {
	raw, there := live["status"]
	if !there {
		return
	}
	st, ok := raw.(map[string]any)
	if !ok {
		delete(live, "status")
		return
	}
	if g, there := st["observedGeneration"]; there {
		if _, ok := g.(int64); !ok {
			delete(st, "observedGeneration")
		}
	}
	raw, there = st["conditions"]
	if !there {
		return
	}
	list, ok := raw.([]any)
	if !ok {
		delete(st, "conditions")
		return
	}
	kept := list[:0:0]
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		_, typed := c["type"].(string)
		_, said := c["status"].(string)
		if typed && said {
			kept = append(kept, c)
		}
	}
	st["conditions"] = kept
}

// blocksWave says whether a wave waits for an object of this kind to be healthy. A
// claim may wait for the pod that uses it, and that pod may be in a later wave.
func blocksWave(kind, group string) bool {
	return group != "" || kind != "PersistentVolumeClaim"
}
