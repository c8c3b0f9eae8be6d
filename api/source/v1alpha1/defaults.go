// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the fields that a user may leave out.
const (
	DefaultBranch           = "main"
	DefaultInterval         = time.Minute
	DefaultTag              = "latest"
	DefaultRegistryInterval = 5 * time.Minute
)

// SetGitRepositoryDefaults fills in what the user left out.
func SetGitRepositoryDefaults(g *GitRepository) {
	if g.Spec.Ref == (GitRef{}) {
		g.Spec.Ref.Branch = DefaultBranch
	}
	setInterval(&g.Spec.Interval, DefaultInterval)
}

// SetHelmRegistryDefaults fills in what the user left out.
func SetHelmRegistryDefaults(h *HelmRegistry) { setInterval(&h.Spec.Interval, DefaultRegistryInterval) }

// SetOCIRegistryDefaults fills in what the user left out.
func SetOCIRegistryDefaults(o *OCIRegistry) {
	if o.Spec.Ref == (OCIRef{}) {
		o.Spec.Ref.Tag = DefaultTag
	}
	setInterval(&o.Spec.Interval, DefaultRegistryInterval)
}

func setInterval(interval **metav1.Duration, otherwise time.Duration) {
	if *interval == nil {
		*interval = &metav1.Duration{Duration: otherwise}
	}
}

// SecretNames lists the Secrets that the spec refers to, each once, in the order
// of the fields.
func (s *GitRepositorySpec) SecretNames() []string {
	return secretNames(s.SecretRef, s.CASecretRef, webhookSecret(s.Webhook))
}

// SecretNames lists the Secrets that the spec refers to, each once, in the order
// of the fields.
func (s *HelmRegistrySpec) SecretNames() []string {
	return secretNames(s.SecretRef, s.CASecretRef, webhookSecret(s.Webhook), verifySecret(s.Verify))
}

// SecretNames lists the Secrets that the spec refers to, each once, in the order
// of the fields.
func (s *OCIRegistrySpec) SecretNames() []string {
	return secretNames(s.SecretRef, s.CASecretRef, webhookSecret(s.Webhook), verifySecret(s.Verify))
}

func webhookSecret(w *SourceWebhook) *SecretReference {
	if w == nil {
		return nil
	}
	return &w.SecretRef
}

func verifySecret(v *SourceVerify) *SecretReference {
	if v == nil {
		return nil
	}
	return &v.SecretRef
}

func secretNames(refs ...*SecretReference) []string {
	var names []string
	for _, ref := range refs {
		if ref != nil && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}
