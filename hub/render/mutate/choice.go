// SPDX-License-Identifier: Apache-2.0

package mutate

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case int:
		return v == 0
	case int64:
		return v == 0
	case uint64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}

func coalesce(values ...any) any {
	for _, value := range values {
		if !empty(value) {
			return value
		}
	}
	return nil
}

// ternary gives yes or no by a condition, which comes last so that it can be piped.
func ternary(yes, no any, condition bool) any {
	if condition {
		return yes
	}
	return no
}

func required(message string, value any) (any, error) {
	if empty(value) {
		return nil, because("%s", shown(message))
	}
	return value, nil
}
