// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	judged "kumodo.io/convoy/pkg/health"
)

// health of one object.
type health = judged.State

const (
	healthUnknown = judged.Unknown
	healthy       = judged.Healthy
	progressing   = judged.Progressing
	degraded      = judged.Degraded
	suspended     = judged.Suspended
	terminating   = judged.Terminating
)

// judge computes the health of a live object by the built-in rules, and why when it is
// not healthy. live is not changed.
func judge(live map[string]any) (health, string) {
	v := judged.Judge(live)
	return v.State, v.Message
}

// judge computes the health of a live object by the rules of the order, and where they
// have none for its kind by the built-in ones. live is not changed.
func (r *release) judge(live map[string]any) judged.Verdict {
	ruled := r.ruled.Load()
	if ruled == nil {
		return judged.Judge(live)
	}
	if ruled.bound == nil {
		return judged.Verdict{State: healthUnknown, Message: "the health rules of the order are not here yet"}
	}
	if v, ok := ruled.bound.Judge(live); ok {
		return v
	}
	return judged.Judge(live)
}

func finalizersOf(live map[string]any) string {
	list, _, err := unstructured.NestedStringSlice(live, "metadata", "finalizers")
	if err != nil || len(list) == 0 {
		return ""
	}
	return ", held by finalizer " + joinFields(list)
}

// blocksWave says whether a wave waits for an object of this kind to be healthy. A
// claim may wait for the pod that uses it, and that pod may be in a later wave.
func blocksWave(kind, group string) bool {
	return group != "" || kind != "PersistentVolumeClaim"
}

// blocks says whether a wave waits for an object because of its health. What somebody
// has suspended would be waited for in vain.
func (o *object) blocks() bool {
	return o.health != healthy && o.health != suspended && blocksWave(o.id.Kind, o.id.Group)
}

// rests says whether an object is complete although it is suspended: a CronJob makes
// nothing between its times either.
func (o *object) rests() bool {
	return o.health == suspended && o.id.Group == "batch" && o.id.Kind == "CronJob"
}
