// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/pkg/manifest"
)

// world answers what templates and expressions ask of cluster and self.
type world struct{ facts facts.Facts }

// missing is the error for a key that is not there; it names the cluster where that has to do
// with it.
func (w *world) missing(name string) error {
	cluster, ok := "", false
	if !strings.HasPrefix(name, "object.") {
		cluster, ok = w.facts.Read(facts.Cluster + "name")
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrKey, shown(name))
	}
	return fmt.Errorf("%w: %s, on cluster %s", ErrKey, shown(name), shown(cluster))
}

// lookup is something whose keys are asked for one by one.
type lookup interface {
	// find gives the value of a key.
	find(key string) (any, bool)
	// all gives all keys and values; that counts as having asked for each.
	all() map[string]any
	// called is what messages call it: cluster, self.labels.
	called() string
}

// class is a class of facts that are texts: the cluster's, labels, annotations.
type class struct {
	*world
	name string // with the dot at its end, as in facts
}

func (c class) find(key string) (any, bool) {
	value, ok := c.facts.Read(c.name + key)
	if !ok {
		return nil, false
	}
	return value, true
}

func (c class) all() map[string]any {
	list := map[string]any{}
	for key, value := range c.facts.All(c.name) {
		list[key] = value
	}
	return list
}

func (c class) called() string { return c.name[:len(c.name)-1] }

// self is the Release.
type self struct{ *world }

// selfKeys are what is known of it.
var selfKeys = []string{"name", "namespace", "targetNamespace", "labels", "annotations"}

func (s self) find(key string) (any, bool) {
	switch key {
	case "labels":
		return class{s.world, facts.SelfLabels}, true
	case "annotations":
		return class{s.world, facts.SelfAnnotations}, true
	case "name", "namespace", "targetNamespace":
		return s.facts.Read("self." + key)
	default:
		return nil, false
	}
}

func (s self) all() map[string]any {
	list := map[string]any{}
	for _, key := range selfKeys {
		value, _ := s.find(key)
		if inner, ok := value.(lookup); ok {
			value = inner.all()
		}
		list[key] = value
	}
	return list
}

func (s self) called() string { return "self" }

// subject is the object that a mutation meets, in the forms that are asked for.
type subject struct {
	object *manifest.Object
	plain  map[string]any
}

// native gives the object with Go's numbers in place of json.Number, which is a text
// for templates and expressions.
func (s *subject) native() map[string]any {
	if s.plain == nil {
		s.plain, _ = native(s.object.Content).(map[string]any)
	}
	return s.plain
}

func native(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = native(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = native(item)
		}
		return list
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseFloat(string(v), 64); err == nil {
			return n
		}
		return string(v)
	default:
		return value
	}
}

// stored is the way back: a value of a template in the form that objects have. Lists
// and maps of a template may hold each other many times over, so what is written out
// is counted.
func stored(value any) (any, error) { return (&storer{}).value(value) }

type storer struct{ nodes, bytes int }

func (s *storer) value(value any) (any, error) {
	if s.nodes++; s.nodes > maxNodes {
		return nil, &reason{fmt.Errorf("%w: a value of more than %d parts", ErrTooLarge, maxNodes)}
	}
	switch v := value.(type) {
	case nil, bool, json.Number:
		return v, nil
	case string:
		s.bytes += len(v)
		return v, fits(s.bytes)
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), nil
	case float64:
		text, err := json.Marshal(v)
		if err != nil {
			return nil, because("a number that is not finite")
		}
		return json.Number(text), nil
	case lookup:
		return s.value(v.all())
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			kept, err := s.value(item)
			if err != nil {
				return nil, err
			}
			list[i] = kept
		}
		return list, nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			kept, err := s.value(v[key])
			if err != nil {
				return nil, err
			}
			m[key] = kept
		}
		return m, nil
	default:
		return nil, because("a value of type %T", value)
	}
}
