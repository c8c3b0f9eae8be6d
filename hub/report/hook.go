// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// hookRuns are the last runs of hooks as a status shows them; nil when nothing was said
// of any, and what is known stays.
func hookRuns(runs []tunnel.HookRun) []v1alpha1.HookRun {
	if len(runs) == 0 {
		return nil
	}
	out := make([]v1alpha1.HookRun, min(len(runs), maxHooks))
	for i := range out {
		in := &runs[i]
		out[i] = v1alpha1.HookRun{
			Hook: clip(in.Hook, maxHookName), Phase: v1alpha1.HookPhase(cleanReason(in.Phase)), Run: clip(in.Run, maxName),
			State: v1alpha1.HookState(cleanReason(in.State)),
			Kind:  clip(in.Kind, maxName), Namespace: clip(in.Namespace, maxName), ObjectName: clip(in.Name, maxName),
			StartedAt: wholeSeconds(&in.StartedAt), FinishedAt: wholeSeconds(in.FinishedAt), Message: clip(in.Message, maxExceptionText),
		}
	}
	return out
}

// heldPrune is what an order waits to delete, as a status shows it.
func heldPrune(held *tunnel.HeldPrune) *v1alpha1.HeldPrune {
	if held == nil {
		return nil
	}
	out := &v1alpha1.HeldPrune{
		Sequence: held.Sequence, Count: held.Count, Total: held.Total, Digest: clip(held.Digest, maxName),
		Since: metav1.NewTime(held.Since.Truncate(time.Second)),
	}
	for _, object := range held.Objects[:min(len(held.Objects), maxHeldObjects)] {
		out.Objects = append(out.Objects, clip(object, maxExceptionText))
	}
	return out
}
