// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/pkg/manifest"
)

// others says which object that is not being deleted would go with one of ours: one in a
// namespace, or one of a kind that we defined. An error means that it cannot be told.
func (r *release) others(ctx context.Context, o *object, res resource, rules deleteRules) (occupied, error) {
	switch {
	case isNamespace(o.id):
		if err := r.leftByHooks(ctx, func(id manifest.Identity) bool { return id.Namespace == o.id.Name }); err != nil {
			return occupied{}, err
		}
		return r.stranger(ctx, o.id.Name, rules)
	case isDefinition(o.id):
		live, err := r.runner.target.get(ctx, res, "", o.id.Name)
		if err != nil {
			return occupied{}, err
		}
		defined, ok := definedBy(live)
		if !ok {
			return occupied{why: "it serves no version, so that it cannot be told whether there are objects of its kind"}, nil
		}
		if err := r.leftByHooks(ctx, func(id manifest.Identity) bool { return id.Group == defined.group && id.Kind == defined.kind }); err != nil {
			return occupied{}, err
		}
		return r.strangerOf(ctx, defined)
	}
	return occupied{}, nil
}

// definedBy says where objects of the kind of a live definition live.
func definedBy(live map[string]any) (resource, bool) {
	spec, ok := live["spec"].(map[string]any)
	if !ok {
		return resource{}, false
	}
	names, ok := spec["names"].(map[string]any)
	if !ok {
		return resource{}, false
	}
	versions, ok := spec["versions"].([]any)
	if !ok {
		return resource{}, false
	}
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if ok && version["served"] == true {
			return resource{
				group: text(spec["group"]), version: text(version["name"]), plural: text(names["plural"]), kind: text(names["kind"]),
			}, true
		}
	}
	return resource{}, false
}

// strangerOf says which object of a kind, in whatever namespace, stands in the way of the
// deletion of that kind.
func (r *release) strangerOf(ctx context.Context, res resource) (occupied, error) {
	var waits occupied
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		body, _, err := r.runner.target.call(ctx, request{
			verb: "list", method: http.MethodGet, path: res.path("", ""), query: query, accept: typeMetaList,
		})
		if kindGone(err) {
			return waits, nil
		}
		if err != nil {
			return occupied{}, fmt.Errorf("list %s: %w", res.plural, err)
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
			found := r.inhabitant(res, item, true)
			if found.why != "" {
				return found, nil
			}
			if waits.wait == "" {
				waits = found
			}
		}
		if page.Continue == "" {
			return waits, nil
		}
		query.Set("continue", page.Continue)
	}
}

// annotationTexts reads the annotations of an object of a render.
func annotationTexts(content map[string]any) map[string]string {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	raw, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return nil
	}
	annotations := make(map[string]string, len(raw))
	for key, value := range raw {
		annotations[key] = text(value)
	}
	return annotations
}

// holdsAny says whether a line holds one of some texts.
func holdsAny(line []byte, marks [][]byte) bool {
	for _, mark := range marks {
		if bytes.Contains(line, mark) {
			return true
		}
	}
	return false
}
