// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// hookAnnotations are those by which an object of a render was called a hook, by this
// hub or by one that did not know them yet.
var hookAnnotations = []string{v1alpha1.AnnotationHook, "helm.sh/hook", "argocd.argoproj.io/hook"}

// refuseTurned refuses hooks that were ordinary objects of the Release before: as a
// hook such an object would be deleted to be made anew, or be in nobody's care any
// more, and neither is what an annotation may do to a workload. Jobs, and Pods that end,
// are work that is done once: they are made anew when the hook runs. What is kept stays,
// and is changed where it is. What was called a hook when it was applied has only found
// somebody who knows what that is.
func (r *release) refuseTurned(ctx context.Context, p *plan) error {
	for _, h := range p.hooks {
		o := r.object(h.id)
		if o == nil || h.id.Kind == "Job" && isRun(h.id) || h.keep {
			continue
		}
		r.mu.Lock()
		applied, render, line, digest := o.applied && !o.orphaned, o.render, o.line, o.digest
		r.mu.Unlock()
		if !applied || render == nil {
			continue
		}
		content, err := r.content(ctx, render, line, digest)
		if errors.Is(err, ErrNotStored) {
			content, err = nil, nil // it cannot be told: the safe side is to refuse
		}
		if err != nil {
			return err
		}
		if !calledHook(annotationTexts(content)) && !(isRun(h.id) && ends(content)) {
			h.fail(rejected, exceptionRejected, "is an object of this Release, and as a hook it would be deleted and made anew, or be in nobody's care: "+
				"give the hook another name, or let the object leave the render first")
		}
	}
	return nil
}

// ends says whether a Pod is one that ends by itself.
func ends(pod map[string]any) bool {
	spec, ok := pod["spec"].(map[string]any)
	return ok && (text(spec["restartPolicy"]) == "Never" || text(spec["restartPolicy"]) == "OnFailure")
}

// calledHook says whether annotations name a phase to run in. Argo CD's Sync names
// none: such an object is an ordinary one of its wave.
func calledHook(annotations map[string]string) bool {
	for _, key := range hookAnnotations {
		for _, word := range splitWords(annotations[key]) {
			if word != "Sync" {
				return true
			}
		}
	}
	return false
}
