// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// errPreview: a preview that is not what the application is made of.
var errPreview = errors.New("the preview is not the application")

// preview asks the hub what a Release would render to.
func (s *stage) preview(ctx context.Context, v *voice) error {
	name := shop + "-" + s.edges[0].Name
	names, err := s.hub.Plugin(ctx, "-n", team, "preview", name, "-o", "names")
	if err != nil {
		return err
	}
	if err := checkPreview(names); err != nil {
		return err
	}
	v.line("kubectl convoy --context hub -n %s preview %s shows what it renders to: %d objects", team, name, len(parts))
	return nil
}

// checkPreview compares the names that a preview printed, each as kubectl get takes
// it, with what was committed.
func checkPreview(names string) error {
	shown := map[string]bool{}
	count := 0
	for line := range strings.Lines(names) {
		count++
		object, namespace, _ := strings.Cut(strings.TrimSpace(line), " -n ")
		kind, name, _ := strings.Cut(object, "/")
		kind, _, _ = strings.Cut(kind, ".") // its group
		shown[kind+"/"+name+" "+namespace] = true
	}
	for _, one := range parts {
		if !shown[strings.ToLower(one.kind)+"/"+one.name+" "+one.namespace] {
			return fmt.Errorf("%w: it has no %s %s:\n%s", errPreview, one.kind, one.name, names)
		}
	}
	if count != len(parts) {
		return fmt.Errorf("%w: %d objects, not %d:\n%s", errPreview, count, len(parts), names)
	}
	return nil
}
