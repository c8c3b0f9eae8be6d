// SPDX-License-Identifier: Apache-2.0

package expression

import "strings"

// Facts makes the variables cluster and self of facts by path, as Reads names them.
// What is not among the facts is not there for an expression.
func Facts(facts map[string]string) map[string]any {
	class, me := map[string]string{}, map[string]any{}
	inner := map[string]map[string]string{}
	for field, isMap := range fields {
		if isMap {
			inner[field] = map[string]string{}
			me[field] = inner[field]
		}
	}
	for path, value := range facts {
		root, key, _ := strings.Cut(path, ".")
		switch root {
		case cluster:
			class[key] = value
		case self:
			field, rest, deeper := strings.Cut(key, ".")
			if isMap, known := fields[field]; deeper && isMap {
				inner[field][rest] = value
			} else if known && !deeper && !isMap {
				me[field] = value
			}
		}
	}
	return map[string]any{cluster: class, self: me}
}
