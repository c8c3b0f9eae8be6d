// SPDX-License-Identifier: Apache-2.0

package content

import (
	"slices"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// Annotations of Argo CD that are understood, beside that of a wave.
const (
	argoAnnotation   = "argocd.argoproj.io/hook"
	argoDeletePolicy = "argocd.argoproj.io/hook-delete-policy"
)

// Words of Argo CD that are no phase here: an object that is one of the sync itself is
// applied in its wave as any other, one that is skipped is no part of the render.
const (
	argoSync = "Sync"
	argoSkip = "Skip"
)

// argoPhases are those of its hooks.
var argoPhases = map[string]v1alpha1.HookPhase{
	"PreSync": v1alpha1.HookPreSync, "PostSync": v1alpha1.HookPostSync, "SyncFail": v1alpha1.HookSyncFailed,
	"PreDelete": v1alpha1.HookPreDelete, "PostDelete": v1alpha1.HookPostDelete,
}

// argoHook marks an object that is a hook of Argo CD, and of nobody else. why is not
// empty when it is left out.
func argoHook(object *manifest.Object) (why string, err error) {
	if annotation(object, argoAnnotation) == "" || isHook(object) {
		return "", nil
	}
	known := []string{"PreSync", argoSync, "PostSync", "SyncFail", "PreDelete", "PostDelete", argoSkip}
	list, err := words(object, argoAnnotation, known)
	switch {
	case err != nil:
		return "", err
	case slices.Contains(list, argoSkip):
		return whySkip, nil
	}
	var mapped []string
	for _, word := range list {
		if phase, is := argoPhases[word]; is {
			mapped = append(mapped, string(phase))
		}
	}
	if len(mapped) == 0 {
		return "", nil
	}
	annotate(object, v1alpha1.AnnotationHook, strings.Join(mapped, ","))
	if annotation(object, argoDeletePolicy) == "" {
		return "", nil
	}
	policies, err := words(object, argoDeletePolicy, deletePolicies)
	if err != nil {
		return "", err
	}
	annotate(object, v1alpha1.AnnotationHookDeletePolicy, strings.Join(policies, ","))
	return "", nil
}
