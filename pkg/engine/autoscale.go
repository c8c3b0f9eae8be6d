// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// The number of replicas is left to an autoscaler without a rule: when one of the same
// render, or any on the cluster, targets the object; and when the render gives no number.
// Autoscalers are looked for when a number would change; and, as long as one that was
// found keeps a number from being the render's, now and then, since nothing tells when it
// goes. See rescale.go. A number whose autoscaler is gone, or aims elsewhere, stays for a
// while, and that is told: see unscaled.go.

// scaling says to whom the number of replicas of an object is left.
type scaling uint8

const (
	scaledByRender  scaling = iota // to nobody: the number of the render holds
	scaledInRender                 // an autoscaler of the same render
	scaledOnCluster                // one that was found on the cluster
	scaledUnsaid                   // the render gives no number
	scaledBefore                   // one that was there a moment ago
)

// String is what a record has.
func (s scaling) String() string {
	switch s {
	case scaledInRender:
		return "render"
	case scaledOnCluster:
		return "cluster"
	case scaledUnsaid:
		return "unsaid"
	case scaledBefore:
		return "before"
	case scaledByRender:
	}
	return ""
}

func parseScaling(text string) scaling {
	for _, s := range []scaling{scaledInRender, scaledOnCluster, scaledUnsaid, scaledBefore} {
		if s.String() == text {
			return s
		}
	}
	return scaledByRender
}

// replicas is where the number is, in all kinds that have one.
var replicas = []string{"spec", "replicas"}

// scaler is an autoscaler of a render.
type scaler struct {
	it     *item
	target groupKind
	name   string
}

// isScaler says whether a kind is one of autoscalers that name their target.
func isScaler(id manifest.Identity) bool {
	return id.Group == "autoscaling" && id.Kind == "HorizontalPodAutoscaler" || id.Group == "keda.sh" && id.Kind == "ScaledObject"
}

// scaleTarget is what an autoscaler names.
type scaleTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// of reads the target out of an autoscaler's spec. KEDA's names a Deployment when it
// names no kind.
func (t scaleTarget) groupKind() groupKind {
	if t.Kind == "" {
		return groupKind{"apps", "Deployment"}
	}
	group, _ := manifest.GroupVersion(t.APIVersion)
	return groupKind{group, t.Kind}
}

// addScaler notes an autoscaler of the render.
func (p *plan) addScaler(it *item, content map[string]any) {
	spec, ok := content["spec"].(map[string]any)
	if !ok {
		return
	}
	ref, ok := spec["scaleTargetRef"].(map[string]any)
	if !ok {
		return
	}
	t := scaleTarget{text(ref["apiVersion"]), text(ref["kind"]), text(ref["name"])}
	p.scalers = append(p.scalers, scaler{it: it, target: t.groupKind(), name: t.Name})
}

// scales says whether an autoscaler of the render targets an object.
func (p *plan) scales(id manifest.Identity) bool {
	if p == nil {
		return false
	}
	for _, s := range p.scalers {
		if s.name == id.Name && s.target == (groupKind{id.Group, id.Kind}) && s.it.id.Namespace == id.Namespace {
			return true
		}
	}
	return false
}

// scalable says whether an object may have a number of replicas that is not the render's.
func scalable(id manifest.Identity, content map[string]any) bool {
	if _, there := replicasOf(content); there {
		return true
	}
	switch (groupKind{id.Group, id.Kind}) {
	case groupKind{"apps", "Deployment"}, groupKind{"apps", "StatefulSet"}, groupKind{"apps", "ReplicaSet"},
		groupKind{"", "ReplicationController"}, groupKind{"argoproj.io", "Rollout"}:
		return true
	}
	return false
}

// replicasOf reads the number of replicas.
func replicasOf(object map[string]any) (any, bool) {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return nil, false
	}
	n, there := spec["replicas"]
	return plainNumber(n), there
}

// scalingOf says to whom the number of replicas of a live object is left, now that the
// render says content. p is nil for a repair; before is what was found last.
func (r *release) scalingOf(ctx context.Context, p *plan, id manifest.Identity, before scaling, content, live map[string]any) (scaling, error) {
	to, err := r.findScaling(ctx, p, id, before, content, live)
	if err == nil && to != scaledBefore {
		r.mu.Lock()
		r.scaledAgainLocked(r.objects[id])
		r.mu.Unlock()
	}
	return to, err
}

func (r *release) findScaling(ctx context.Context, p *plan, id manifest.Identity, before scaling, content, live map[string]any) (scaling, error) {
	if !scalable(id, content) {
		return scaledByRender, nil
	}
	if p.scales(id) || (p == nil && before == scaledInRender) {
		return scaledInRender, nil
	}
	wanted, said := replicasOf(content)
	if !said {
		return scaledUnsaid, nil
	}
	have, there := replicasOf(live)
	if !there || (same(wanted, have) && before != scaledOnCluster) {
		return scaledByRender, nil
	}
	one := scaledBy(id)
	found, err := r.scaledIn(ctx, p, id.Namespace, one)
	switch {
	case err != nil && (apierrors.IsForbidden(err) || errors.Is(err, errUnreadable)):
		// It cannot be asked. Whoever writes through the scale subresource by program is
		// taken for one.
		if scaledByProgram(live) {
			return scaledOnCluster, nil
		}
	case err != nil:
		return scaledByRender, fmt.Errorf("look for autoscalers: %w", err)
	}
	switch {
	case found.aimed[one]:
		return scaledOnCluster, nil
	case same(wanted, have), found.leaving[one]:
		return scaledByRender, nil // nothing is at stake, or the render takes it back
	case before == scaledInRender, before == scaledOnCluster, before == scaledBefore:
		return r.unscale(id, wanted, have, found.lost[one.kind]), nil
	}
	return scaledByRender, nil
}

// scaledByProgram says whether the number was last written through the scale
// subresource, by other than kubectl.
func scaledByProgram(live map[string]any) bool {
	for _, e := range managers(live) {
		if e.subresource == "scale" && !strings.HasPrefix(e.manager, "kubectl") && owns(e.fields, []string{"f:spec", "f:replicas"}) {
			return true
		}
	}
	return false
}

// autoscalerManagers are who writes numbers for the autoscalers that are looked for.
var autoscalerManagers = []string{"kube-controller-manager", "keda"}

// scaledByNobody says of an object that no autoscaler aims at whether its number is owned
// by nothing but one that is gone: it was written for one, through the scale subresource.
func scaledByNobody(live map[string]any) bool {
	any := false
	for _, e := range managers(live) {
		if !owns(e.fields, []string{"f:spec", "f:replicas"}) || e.manager == v1alpha1.FieldManager && e.applied {
			continue
		}
		if e.subresource != "scale" || !slices.Contains(autoscalerManagers, e.manager) {
			return false
		}
		any = true
	}
	return any
}

// errUnreadable: there are more autoscalers in a namespace than are read.
var errUnreadable = errors.New("too many autoscalers")
