// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Object is one object of a Set with the place that it comes from.
type Object struct {
	Identity
	Version string
	Wave    int32
	Place   Place
	// Content: map[string]any, []any, string, bool, nil and json.Number.
	Content map[string]any
	// Sealed points (JSON pointers) at texts in Content to seal beyond the values of
	// a Secret, which always are. One that leads to no text is an error of Write and
	// WritePlain: what has to be sealed is never written in clear.
	Sealed []string
}

var (
	errMissing      = errors.New("is missing")
	errNotText      = errors.New("must be text: quote it")
	errNotMap       = errors.New("must be a map")
	errNotBase64    = errors.New("is not base64")
	errGenerateName = errors.New("generateName is not supported: an object needs a name to be found again")
	errAPIVersion   = errors.New("must be a version, or a group and a version")
)

// lastApplied holds a copy of the object that kubectl left, Secret values
// included; it says nothing about what is wanted now.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// serverFields are the fields of metadata that only an API server writes.
var serverFields = []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// newObject checks and normalises the content of one object. line gives the line
// of a field.
func newObject(content map[string]any, place Place, line func(...string) int) (Object, Errors) {
	c := &checker{place: place, line: line}
	object := Object{Place: place, Content: content}
	apiVersion := c.text(content, "apiVersion")
	object.Kind = c.text(content, "kind")
	if apiVersion != "" {
		object.Group, object.Version = GroupVersion(apiVersion)
		if object.Version == "" || strings.Contains(object.Version, "/") || strings.HasPrefix(apiVersion, "/") {
			c.fail(errAPIVersion, "apiVersion")
		}
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		if content["metadata"] == nil {
			c.fail(errMissing, "metadata")
		} else {
			c.fail(errNotMap, "metadata")
		}
		c.nameFaults(object)
		return object, c.faults
	}
	object.Name = c.objectName(metadata)
	object.Namespace = c.namespace(metadata)
	labels := c.textMap(metadata, "metadata", "labels")
	annotations := c.textMap(metadata, "metadata", "annotations")
	for _, owned := range []struct {
		in   map[string]string
		what string
		key  string
	}{{labels, "labels", v1alpha1.LabelManaged}, {annotations, "annotations", v1alpha1.AnnotationOwner}} {
		if _, there := owned.in[owned.key]; there {
			c.fail(ErrOwnerKey, "metadata", owned.what, owned.key)
		}
	}
	wave, err := Wave(annotations)
	if err != nil {
		c.fail(err, "metadata", "annotations")
	}
	object.Wave = wave
	c.normalise(object, metadata)
	if object.Group == "" {
		switch object.Kind {
		case "ConfigMap":
			c.textMap(content, "data")
			c.binaryData(content)
		case "Secret":
			c.secret(content)
		}
	}
	c.nameFaults(object)
	return object, c.faults
}

// checker collects the faults of one object.
type checker struct {
	place  Place
	line   func(...string) int
	faults Errors
}

func (c *checker) fail(err error, steps ...string) {
	place := c.place
	if line := c.line(steps...); line > 0 {
		place.Line = line
	}
	c.faults = append(c.faults, &Error{Place: place, Path: pathText(steps), Err: err})
}

// nameFaults puts the object's name on all faults.
func (c *checker) nameFaults(object Object) {
	for _, err := range c.faults {
		var e *Error
		if errors.As(err, &e) {
			e.Object = strings.TrimSpace(shown(object.Kind) + " " + shown(strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")))
		}
	}
}

// text gives a required text field of the top level.
func (c *checker) text(content map[string]any, key string) string {
	text, ok := content[key].(string)
	switch {
	case content[key] == nil, ok && text == "":
		c.fail(errMissing, key)
	case !ok:
		c.fail(errNotText, key)
	}
	return text
}

func (c *checker) objectName(metadata map[string]any) string {
	name, ok := metadata["name"].(string)
	switch {
	case ok && name != "":
	case metadata["name"] != nil && !ok:
		c.fail(errNotText, "metadata", "name")
	case metadata["generateName"] != nil:
		c.fail(errGenerateName, "metadata", "generateName")
	default:
		c.fail(errMissing, "metadata", "name")
	}
	return name
}

func (c *checker) namespace(metadata map[string]any) string {
	namespace, ok := metadata["namespace"].(string)
	if !ok && metadata["namespace"] != nil {
		c.fail(errNotText, "metadata", "namespace")
	}
	if namespace == "" {
		delete(metadata, "namespace")
	}
	return namespace
}

// textMap checks a map whose values must be text, and gives them. A value of null
// is allowed: kubectl sends it, and a server takes it for no text.
func (c *checker) textMap(parent map[string]any, steps ...string) map[string]string {
	value := parent[steps[len(steps)-1]]
	if value == nil {
		return nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		c.fail(errNotMap, steps...)
		return nil
	}
	texts := make(map[string]string, len(values))
	for _, key := range sortedKeys(values) {
		text, ok := values[key].(string)
		if !ok && values[key] != nil {
			c.fail(errNotText, append(slices.Clone(steps), key)...)
		}
		texts[key] = text
	}
	return texts
}

// normalise drops what only a server writes, so that an exported object neither
// conflicts with the live one nor claims fields that it cannot have.
func (c *checker) normalise(object Object, metadata map[string]any) {
	content := object.Content
	delete(content, "status")
	for _, key := range serverFields {
		delete(metadata, key)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		dropWritten(object, annotations)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	dropNullTimestamps(content, 0)
}

// dropNullTimestamps removes the "creationTimestamp: null" that generators leave
// in the metadata of pod templates.
func dropNullTimestamps(value any, depth int) {
	if depth > MaxDepth {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			if stamp, there := metadata["creationTimestamp"]; there && stamp == nil {
				delete(metadata, "creationTimestamp")
			}
		}
		for _, child := range v {
			dropNullTimestamps(child, depth+1)
		}
	case []any:
		for _, child := range v {
			dropNullTimestamps(child, depth+1)
		}
	}
}

// binaryData checks that what a ConfigMap has as bytes is base64, as it has to be written.
func (c *checker) binaryData(content map[string]any) {
	values := c.textMap(content, "binaryData")
	for _, key := range sortedKeys(values) {
		if _, err := base64.StdEncoding.DecodeString(values[key]); err != nil {
			c.fail(errNotBase64, "binaryData", key)
		}
	}
}

// secret folds stringData into data, where it wins, and brings all values to one
// form of base64, so that the live object has the same bytes.
func (c *checker) secret(content map[string]any) {
	before := len(c.faults)
	data := c.textMap(content, "data")
	plain := c.textMap(content, "stringData")
	if len(c.faults) > before {
		return
	}
	if data == nil && plain == nil {
		delete(content, "stringData")
		return
	}
	folded := make(map[string]any, len(data)+len(plain))
	for _, key := range sortedKeys(data) {
		value, err := base64.StdEncoding.DecodeString(data[key])
		if err != nil {
			if _, replaced := plain[key]; !replaced {
				c.fail(errNotBase64, "data", key)
			}
			continue
		}
		folded[key] = base64.StdEncoding.EncodeToString(value)
	}
	for key, value := range plain {
		folded[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	delete(content, "stringData")
	content["data"] = folded
}

// sealedPointers points at all that has to be sealed, each place once, in an order
// that depends on the places only.
func (o *Object) sealedPointers() []string {
	pointers := slices.Clone(o.Sealed)
	if isSecret(o.Group, o.Kind) {
		pointers = append(pointers, secretPointers(o.Content)...)
	}
	slices.Sort(pointers)
	return slices.Compact(pointers)
}

// isSecret reports whether all of an object's data has to be sealed.
func isSecret(group, kind string) bool { return group == "" && kind == "Secret" }

// OwnerKey names the label or annotation of an object that only the engine may
// write, or is empty.
func OwnerKey(content map[string]any) string {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	if labels, ok := metadata["labels"].(map[string]any); ok {
		if _, there := labels[v1alpha1.LabelManaged]; there {
			return v1alpha1.LabelManaged
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		if _, there := annotations[v1alpha1.AnnotationOwner]; there {
			return v1alpha1.AnnotationOwner
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// duplicate is the fault of an object that stands in two places.
func duplicate(first, second *Object) error {
	return &Error{Place: second.Place, Object: second.String(), Err: fmt.Errorf("%w: also in %s", ErrDuplicate, first.Place)}
}
