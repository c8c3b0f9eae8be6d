// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// createOnly is the value of metadata.deletionGracePeriodSeconds in an apply that
// must make a new object: the server drops the field from an object that it makes,
// and refuses the change of it in one that exists. So nothing that appeared after
// we looked can be taken for ours.
const createOnly = 1<<31 - 2

// createOnlyField is where the server's refusal points.
const createOnlyField = "metadata.deletionGracePeriodSeconds"

// precondition is what must still hold when an apply arrives.
type precondition struct {
	uid, resourceVersion string
	create               bool
}

// serverMade are fields of metadata that a server writes. One left in a render
// from an export must not become a precondition or ours.
var serverMade = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "resourceVersion", "selfLink", "uid",
}

// marks are the label and annotation that every object of a Release gets.
type marks struct{ hub, owner string }

func newMarks(hub, uid string) marks { return marks{hub: hub, owner: hub + "/" + uid} }

// body makes the apply of an object out of its content, which it changes.
func (m marks) body(content map[string]any, id manifest.Identity, pre precondition) ([]byte, error) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no metadata", id)
	}
	for _, field := range serverMade {
		delete(metadata, field)
	}
	delete(content, "status")
	if content["aggregationRule"] != nil && id.Kind == "ClusterRole" {
		// The control plane fills in the rules; ours would empty them for a moment.
		delete(content, "rules")
	}
	if id.Namespace != "" {
		metadata["namespace"] = id.Namespace
	} else {
		delete(metadata, "namespace")
	}
	if err := put(metadata, "labels", v1alpha1.LabelManaged, m.hub); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if err := put(metadata, "annotations", v1alpha1.AnnotationOwner, m.owner); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	switch {
	case pre.create:
		metadata["deletionGracePeriodSeconds"] = createOnly
	case pre.uid != "":
		metadata["uid"] = pre.uid
		metadata["resourceVersion"] = pre.resourceVersion
	}
	body, err := encode(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	return body, nil
}

func put(metadata map[string]any, field, key, value string) error {
	if metadata[field] == nil {
		metadata[field] = map[string]any{}
	}
	m, ok := metadata[field].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata.%s is not a map", field)
	}
	m[key] = value
	return nil
}

// marked says whether a render's object carries a key that is ours to set.
func marked(content map[string]any) bool {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return false
	}
	for _, mark := range [][2]string{
		{"labels", v1alpha1.LabelManaged}, {"annotations", v1alpha1.AnnotationOwner}, {"annotations", v1alpha1.AnnotationHookRun},
	} {
		if m, ok := metadata[mark[0]].(map[string]any); ok {
			if _, there := m[mark[1]]; there {
				return true
			}
		}
	}
	return false
}

// ownerOf returns the owner annotation of a live object.
func ownerOf(live map[string]any) string {
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return ""
	}
	return text(annotations[v1alpha1.AnnotationOwner])
}

// metaText reads a text field of metadata.
func metaText(live map[string]any, field string) string {
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	return text(metadata[field])
}

func encode(content map[string]any) ([]byte, error) {
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	return body, nil
}
