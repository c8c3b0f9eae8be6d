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

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// others names an object of somebody else that would go with one of ours: one in a
// namespace, or one of a kind that we defined. Empty: there is none. An error means
// that it cannot be told.
func (r *release) others(ctx context.Context, o *object, res resource) (string, error) {
	switch {
	case isNamespace(o.id):
		if err := r.leftByHooks(ctx, func(id manifest.Identity) bool { return id.Namespace == o.id.Name }); err != nil {
			return "", err
		}
		return r.stranger(ctx, o.id.Name)
	case isDefinition(o.id):
		live, err := r.runner.target.get(ctx, res, "", o.id.Name)
		if err != nil {
			return "", err
		}
		defined, ok := definedBy(live)
		if !ok {
			return "", nil // it serves no version, so nothing can be of its kind
		}
		if err := r.leftByHooks(ctx, func(id manifest.Identity) bool { return id.Group == defined.group && id.Kind == defined.kind }); err != nil {
			return "", err
		}
		return r.strangerOf(ctx, defined)
	}
	return "", nil
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

// strangerOf names an object of a kind, in whatever namespace, that is not of this
// Release.
func (r *release) strangerOf(ctx context.Context, res resource) (string, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		body, _, err := r.runner.target.call(ctx, request{
			verb: "list", method: http.MethodGet, path: res.path("", ""), query: query, accept: typeMetaList,
		})
		if kindGone(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("list %s: %w", res.plural, err)
		}
		var page metav1.PartialObjectMetadataList
		if err := json.Unmarshal(body, &page); err != nil {
			return "", fmt.Errorf("decode list of %s: %w", res.plural, err)
		}
		for i := range page.Items {
			item := &page.Items[i].ObjectMeta
			if item.DeletionTimestamp == nil && item.Annotations[v1alpha1.AnnotationOwner] != r.marks.owner {
				return manifest.Identity{Group: res.group, Kind: res.kind, Namespace: item.Namespace, Name: item.Name}.String(), nil
			}
		}
		if page.Continue == "" {
			return "", nil
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
