// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// typeMetaList asks for the metadata of a list's items alone.
const typeMetaList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=1,application/json"

// stranger says which object in a namespace stands in the way of its deletion: one that
// is not of this Release, does not come with every namespace and is not made by one of
// these; or one of this Release that is not being deleted. A namespace that is deleted
// takes all of them with it. An error means that it cannot be told.
func (r *release) stranger(ctx context.Context, namespace string, rules deleteRules) (occupied, error) {
	resources, err := r.runner.discovery.everything(ctx)
	if err != nil {
		return occupied{}, err
	}
	var waits occupied
	kinds := make(map[schema.GroupKind]bool, len(resources))
	for _, res := range resources {
		kinds[schema.GroupKind{Group: res.group, Kind: res.kind}] = true
	}
	for _, res := range resources {
		if comesByItself(res) {
			continue
		}
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		for {
			body, _, err := r.runner.target.call(ctx, request{
				verb: "list", method: http.MethodGet, path: res.path(namespace, ""), query: query, accept: typeMetaList,
			})
			if kindGone(err) {
				break
			}
			if err != nil {
				return occupied{}, fmt.Errorf("list %s of namespace %s: %w", res.plural, namespace, err)
			}
			var page metav1.PartialObjectMetadataList
			if err := json.Unmarshal(body, &page); err != nil {
				return occupied{}, fmt.Errorf("decode list of %s: %w", res.plural, err)
			}
			for i := range page.Items {
				item := &page.Items[i].ObjectMeta
				if item.DeletionTimestamp != nil {
					continue
				}
				found := r.inhabitant(res, item, strange(res, item, kinds, rules))
				if found.why != "" {
					return found, nil
				}
				if waits.wait == "" {
					waits = found
				}
			}
			if page.Continue == "" {
				break
			}
			query.Set("continue", page.Continue)
		}
	}
	return waits, nil
}

// strange says whether an object means something by itself. What an owner of it is
// there for does not, but where owners leave what they own.
func strange(res resource, item *metav1.ObjectMeta, kinds map[schema.GroupKind]bool, rules deleteRules) bool {
	if owner := metav1.GetControllerOf(item); owner != nil && rules.propagation != metav1.DeletePropagationOrphan {
		if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && kinds[schema.GroupKind{Group: gv.Group, Kind: owner.Kind}] {
			return false // its owner is in the same namespace, and looked at itself
		}
	}
	if res.group != "" {
		return true
	}
	switch res.plural {
	case "serviceaccounts":
		return item.Name != "default"
	case "configmaps":
		return item.Name != "kube-root-ca.crt"
	case "secrets":
		return item.Annotations["kubernetes.io/service-account.name"] != "default"
	}
	return true
}

// comesByItself says that objects of a kind are notes about others, which no user
// would miss without them.
func comesByItself(res resource) bool {
	switch res.group + "/" + res.plural {
	case "/events", "events.k8s.io/events", "/endpoints", "discovery.k8s.io/endpointslices", "coordination.k8s.io/leases":
		return true
	}
	return res.group == "metrics.k8s.io" || strings.HasSuffix(res.group, ".metrics.k8s.io")
}

// everything lists all namespaced kinds that can be listed, each in one version.
// A group that does not answer is an error: there may be objects of it.
func (d *discovery) everything(ctx context.Context) ([]resource, error) {
	body, _, err := d.target.call(asOurselves(ctx), request{verb: "discover", method: http.MethodGet, path: "/apis"})
	if err != nil {
		return nil, fmt.Errorf("ask which groups are served: %w", err)
	}
	var groups metav1.APIGroupList
	if err := json.Unmarshal(body, &groups); err != nil {
		return nil, fmt.Errorf("decode which groups are served: %w", err)
	}
	core := metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}}
	var all []resource
	seen := map[schema.GroupResource]bool{}
	for _, group := range append([]metav1.APIGroup{core}, groups.Groups...) {
		for _, version := range group.Versions {
			list, err := d.list(ctx, group.Name, version.Version)
			if err != nil {
				return nil, err
			}
			for _, a := range list.APIResources {
				key := schema.GroupResource{Group: group.Name, Resource: a.Name}
				if !a.Namespaced || strings.Contains(a.Name, "/") || !slices.Contains(a.Verbs, "list") || seen[key] {
					continue
				}
				seen[key] = true
				all = append(all, resource{group: group.Name, version: version.Version, plural: a.Name, kind: a.Kind, namespaced: true})
			}
		}
	}
	return all, nil
}
