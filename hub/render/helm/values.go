// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/hub/render/files"
)

// readValues merges what is put over the chart's defaults: values files, then values.
func readValues(o Options, s source) (map[string]any, error) {
	merged := map[string]any{}
	for _, name := range o.ValuesFiles {
		data, err := s.read(o.Tree, name)
		if err != nil {
			return nil, fmt.Errorf("values file %s: %w", name, err)
		}
		values := map[string]any{}
		if err := yaml.Unmarshal(data, &values); err != nil {
			return nil, fmt.Errorf("values file %s: %w: %s", name, ErrValues, cut(err.Error(), o.Secrets))
		}
		merged = Merge(merged, values)
	}
	for i, values := range o.Values {
		plain, err := plainMap(values)
		if err != nil {
			return nil, fmt.Errorf("values %d: %w: %w", i+1, ErrValues, err)
		}
		merged = Merge(merged, plain)
	}
	return merged, nil
}

// read gives a values file: one of the tree, or of the archive that the chart is in.
func (s source) read(tree *files.Tree, name string) ([]byte, error) {
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("%w: it must be relative to the chart", files.ErrOutside)
	}
	clean, err := files.Clean(path.Join(s.base, name))
	if err != nil {
		return nil, err
	}
	if s.packed != nil {
		if inside, ok := strings.CutPrefix(clean, s.base+"/"); ok {
			if data, ok := s.packed[inside]; ok {
				return data, nil
			}
			return nil, fmt.Errorf("%s: %w", clean, fs.ErrNotExist)
		}
	}
	return tree.Read(clean)
}

// Merge puts one map of values over another, map by map. A null stays, so that it can
// remove a default of the chart; what is no map replaces what was there. Neither map
// is changed, though the result may share parts with them.
func Merge(under, over map[string]any) map[string]any {
	merged := make(map[string]any, len(under)+len(over))
	for key, value := range under {
		merged[key] = value
	}
	for key, value := range over {
		upper, isMap := value.(map[string]any)
		lower, wasMap := merged[key].(map[string]any)
		if isMap && wasMap {
			merged[key] = Merge(lower, upper)
		} else {
			merged[key] = value
		}
	}
	return merged
}

// plainMap copies values, numbers as Helm reads them out of a values file: all are
// float64. So a chart sees the same wherever a number was written.
func plainMap(values map[string]any) (map[string]any, error) {
	copied := make(map[string]any, len(values))
	for key, value := range values {
		plain, err := plainValue(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		copied[key] = plain
	}
	return copied, nil
}

func plainValue(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, bool, float64:
		return v, nil
	case int:
		return float64(v), nil
	case int64:
		return float64(v), nil
	case json.Number:
		number, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("a number is too large")
		}
		return number, nil
	case map[string]any:
		return plainMap(v)
	case []any:
		copied := make([]any, len(v))
		for i, item := range v {
			plain, err := plainValue(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			copied[i] = plain
		}
		return copied, nil
	default:
		return nil, fmt.Errorf("%T cannot be a value", value)
	}
}
