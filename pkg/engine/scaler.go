// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"kumodo.io/convoy/pkg/manifest"
)

// horizontalScalers is where Kubernetes' own autoscalers live.
var horizontalScalers = resource{group: "autoscaling", version: "v2", plural: "horizontalpodautoscalers", kind: "HorizontalPodAutoscaler", namespaced: true}

// scaled is an object that an autoscaler names.
type scaled struct {
	kind groupKind
	name string
}

func scaledBy(id manifest.Identity) scaled {
	return scaled{groupKind{id.Group, id.Kind}, id.Name}
}

// scalers are what the autoscalers of a namespace aim at.
type scalers struct {
	aimed map[scaled]bool
	// leaving: it is one of ours, which has left the render and will be pruned.
	leaving map[scaled]bool
	// lost are the names of those that find nothing to scale, by the kind of that.
	lost map[groupKind]string
}

// scaledIn lists what autoscalers of a namespace target; no more than one, if that is
// found. KEDA's are looked at too, where there are any: one that is paused has no
// autoscaler of Kubernetes, and holds the number all the same.
func (r *release) scaledIn(ctx context.Context, p *plan, namespace string, one scaled) (scalers, error) {
	all := scalers{aimed: map[scaled]bool{}, leaving: map[scaled]bool{}, lost: map[groupKind]string{}}
	if err := r.addScaled(ctx, p, horizontalScalers, namespace, one, all); err != nil || all.aimed[one] {
		return all, err
	}
	res, err := r.runner.discovery.find(ctx, "keda.sh", "v1alpha1", "ScaledObject")
	if errors.Is(err, errUnknownKind) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	return all, r.addScaled(ctx, p, res, namespace, one, all)
}

// addScaled reads autoscalers of one kind.
func (r *release) addScaled(ctx context.Context, p *plan, res resource, namespace string, one scaled, all scalers) error {
	query := url.Values{"limit": {strconv.Itoa(scalerPage)}}
	for range scalerPages {
		body, _, err := r.runner.target.call(ctx, request{verb: "list", method: http.MethodGet, path: res.path(namespace, ""), query: query})
		if kindGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
				Spec struct {
					Target scaleTarget `json:"scaleTargetRef"`
				} `json:"spec"`
				Status struct {
					Conditions []scalerCondition `json:"conditions"`
				} `json:"status"`
			} `json:"items"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("decode list: %w", err)
		}
		for i := range page.Items {
			item := &page.Items[i]
			id := manifest.Identity{Group: res.group, Kind: res.kind, Namespace: namespace, Name: item.Metadata.Name}
			aim := scaled{item.Spec.Target.groupKind(), item.Spec.Target.Name}
			switch {
			case p.has(id):
				// It will aim at what the render says, which was looked at.
			case r.goes(p, id):
				all.leaving[aim] = true
			case slices.ContainsFunc(item.Status.Conditions, scalerCondition.lost):
				all.lost[aim.kind] = cmp.Or(all.lost[aim.kind], res.kind+" "+id.Name)
				all.aimed[aim] = true
			default:
				all.aimed[aim] = true
			}
		}
		if page.Metadata.Continue == "" || all.aimed[one] {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
	return errUnreadable
}

// scalerCondition is one of an autoscaler of Kubernetes.
type scalerCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// lost says that what the autoscaler aims at is not there, or cannot be asked.
func (c scalerCondition) lost() bool {
	return c.Type == "AbleToScale" && c.Status == "False" && c.Reason == "FailedGetScale"
}

// goes says whether an autoscaler is ours, and will be pruned after the sync of a plan
// which it is not in.
func (r *release) goes(p *plan, id manifest.Identity) bool {
	if p == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[id] != nil && r.order.Policy.PruneOrphaned
}

// has says whether an autoscaler is in the render.
func (p *plan) has(id manifest.Identity) bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(p.scalers, func(s scaler) bool { return s.it.id == id })
}
