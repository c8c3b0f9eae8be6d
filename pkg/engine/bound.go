// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/pkg/manifest"
)

// boundData says why an object stays although its kind may be deleted: data would go with
// it, or lose its volume. Only the live object tells. waits: a claim that goes with the
// same deletion has to go first.
func (r *release) boundData(ctx context.Context, o *object, res resource, rules deleteRules) (why string, waits bool, err error) {
	isSet := isStatefulSet(o.id) && rules.propagation != metav1.DeletePropagationOrphan && !slices.Contains(rules.allowed, kindClaim)
	if !isSet && !isVolume(o.id) {
		return "", false, nil
	}
	live, err := r.runner.target.get(ctx, res, o.id.Namespace, o.id.Name)
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if isSet {
		if deletesClaims(o.id, live) {
			return claimsGo, false, nil
		}
		return "", false, nil
	}
	spec, ok := live["spec"].(map[string]any)
	if !ok {
		return "", false, nil
	}
	ref, ok := spec["claimRef"].(map[string]any)
	if !ok {
		return "", false, nil
	}
	claim := manifest.Identity{Kind: kindClaim, Namespace: text(ref["namespace"]), Name: text(ref["name"])}
	m, err := r.runner.target.look(ctx, resource{version: "v1", plural: "persistentvolumeclaims", kind: kindClaim, namespaced: true}, claim.Namespace, claim.Name)
	switch uid := text(ref["uid"]); {
	case apierrors.IsNotFound(err), err == nil && uid != "" && uid != m.UID, err == nil && m.Deletion != nil:
		return "", false, nil
	case apierrors.IsForbidden(err):
		return "it cannot be told whether a claim is bound to it: " + explain(err, false), false, nil
	case err != nil:
		return "", false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	with := r.objects[claim]
	waits = with != nil && with.leaving != nil && with.wave >= o.wave && slices.Contains(rules.allowed, kindClaim)
	return fmt.Sprintf("%s is bound to it", claim), waits, nil
}
