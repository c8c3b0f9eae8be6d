// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"

	"kumodo.io/convoy/hub/render/mutate"
)

// mutate applies the mutations. One whose body is a file of the source reads it, so
// that a change of that file makes another render.
func (r *renderer) mutate() error {
	if len(r.job.Mutations) == 0 {
		return nil
	}
	list := make([]mutate.Mutation, 0, len(r.job.Mutations))
	for i, m := range r.job.Mutations {
		bodies := m.Bodies
		if m.File != "" {
			data, err := r.tree.Read(m.File)
			if err != nil {
				return fmt.Errorf("mutation %s: %w", m.name(i), err)
			}
			bodies = []string{string(data)}
		}
		list = append(list, mutate.Mutation{Name: m.name(i), If: m.If, Type: m.Type, Target: m.Target, Bodies: bodies, Secret: m.Secret})
	}
	return mutate.Apply(r.set, list, r.facts)
}

// name is for messages.
func (m *Mutation) name(i int) string {
	if m.Name != "" {
		return m.Name
	}
	return fmt.Sprintf("mutations[%d]", i)
}
