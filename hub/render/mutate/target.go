// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// wildcards are the two of a name.
var wildcards = strings.NewReplacer(`\*`, ".*", `\?`, ".")

// target makes the test of a target: all that it gives has to hold. A selection of
// nothing is no fault: mutations of a Fleet meet Releases that they do not concern.
func target(spec *v1alpha1.MutationTarget) (func(*manifest.Object) bool, error) {
	if spec == nil {
		return func(*manifest.Object) bool { return true }, nil
	}
	name, err := regexp.Compile(`^` + wildcards.Replace(regexp.QuoteMeta(spec.Name)) + `$`)
	if err != nil {
		return nil, fmt.Errorf("%w: name", ErrTarget)
	}
	selector, err := labels.Parse(spec.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: labelSelector: %w", ErrTarget, err)
	}
	return func(object *manifest.Object) bool {
		return (spec.Group == "" || spec.Group == object.Group) &&
			(spec.Kind == "" || spec.Kind == object.Kind) &&
			(spec.Namespace == "" || spec.Namespace == object.Namespace) &&
			(spec.Name == "" || name.MatchString(object.Name)) &&
			(selector.Empty() || selector.Matches(labelsOf(object)))
	}, nil
}

func labelsOf(object *manifest.Object) labels.Set {
	metadata, _ := object.Content["metadata"].(map[string]any)
	values, _ := metadata["labels"].(map[string]any)
	set := labels.Set{}
	for key, value := range values {
		if text, ok := value.(string); ok {
			set[key] = text
		}
	}
	return set
}
