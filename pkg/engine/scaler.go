// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// scaledOnCluster looks for an autoscaler that targets an object. One of ours that has
// left the render, and will be pruned, does not count.
func (r *release) scaledOnCluster(ctx context.Context, p *plan, id manifest.Identity) (bool, error) {
	all, err := r.scaledIn(ctx, p, id.Namespace, scaled{groupKind{id.Group, id.Kind}, id.Name})
	return all[scaled{groupKind{id.Group, id.Kind}, id.Name}], err
}

// scaledIn lists what autoscalers of a namespace target; no more than one, if that is
// found. KEDA's are looked at too, where there are any: one that is paused has no
// autoscaler of Kubernetes, and holds the number all the same.
func (r *release) scaledIn(ctx context.Context, p *plan, namespace string, one scaled) (map[scaled]bool, error) {
	all := map[scaled]bool{}
	if err := r.addScaled(ctx, p, horizontalScalers, namespace, one, all); err != nil || all[one] {
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
func (r *release) addScaled(ctx context.Context, p *plan, res resource, namespace string, one scaled, all map[scaled]bool) error {
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
			} `json:"items"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("decode list: %w", err)
		}
		for i := range page.Items {
			t := page.Items[i].Spec.Target
			if !r.goes(p, manifest.Identity{Group: res.group, Kind: res.kind, Namespace: namespace, Name: page.Items[i].Metadata.Name}) {
				all[scaled{t.groupKind(), t.Name}] = true
			}
		}
		if page.Metadata.Continue == "" || all[one] {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
	return errUnreadable
}

// goes says whether an autoscaler is ours, and is not in the render any more.
func (r *release) goes(p *plan, id manifest.Identity) bool {
	if p == nil || r.object(id) == nil {
		return false
	}
	for _, s := range p.scalers {
		if s.it.id == id {
			return false
		}
	}
	return true
}
