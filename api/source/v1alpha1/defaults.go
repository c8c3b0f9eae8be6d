// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the fields that a user may leave out.
const (
	DefaultBranch   = "main"
	DefaultInterval = time.Minute
)

// SetGitRepositoryDefaults fills in what the user left out.
func SetGitRepositoryDefaults(g *GitRepository) {
	if g.Spec.Ref == (GitRef{}) {
		g.Spec.Ref.Branch = DefaultBranch
	}
	if g.Spec.Interval == nil {
		g.Spec.Interval = &metav1.Duration{Duration: DefaultInterval}
	}
}

// SecretNames lists the Secrets that the spec refers to, each once, in the order
// of the fields.
func (s *GitRepositorySpec) SecretNames() []string {
	var names []string
	if s.SecretRef != nil {
		names = append(names, s.SecretRef.Name)
	}
	if s.CASecretRef != nil && (s.SecretRef == nil || s.SecretRef.Name != s.CASecretRef.Name) {
		names = append(names, s.CASecretRef.Name)
	}
	return names
}
