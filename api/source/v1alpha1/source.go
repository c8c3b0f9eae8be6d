// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Names of the kinds.
const (
	KindGitRepository = "GitRepository"
	KindHelmRegistry  = "HelmRegistry"
	KindOCIRegistry   = "OCIRegistry"
)

// Kinds lists the kinds of sources.
func Kinds() []string { return []string{KindGitRepository, KindHelmRegistry, KindOCIRegistry} }

// Source is what all kinds of sources have.
//
// +k8s:deepcopy-gen=false
type Source interface {
	runtime.Object
	metav1.Object
	// SourceKind is one of Kinds; TypeMeta need not be filled in.
	SourceKind() string
	// SourceURL is where the content is.
	SourceURL() string
	// SourceInterval at which the source is asked again, the default where none is given.
	SourceInterval() time.Duration
	// SourceWebhook is nil when there is none.
	SourceWebhook() *SourceWebhook
	// SecretNames lists the Secrets that the spec refers to, each once, in the order
	// of the fields.
	SecretNames() []string
	// SourceStatus is a copy of the status that shares its lists; SetSourceStatus
	// puts one in its place.
	SourceStatus() SourceStatus
	SetSourceStatus(status SourceStatus)
}

var (
	_ Source = &GitRepository{}
	_ Source = &HelmRegistry{}
	_ Source = &OCIRegistry{}
)

// SourceKind implements Source.
func (*GitRepository) SourceKind() string { return KindGitRepository }

// SourceURL implements Source.
func (g *GitRepository) SourceURL() string { return g.Spec.URL }

// SourceInterval implements Source.
func (g *GitRepository) SourceInterval() time.Duration {
	return intervalOr(g.Spec.Interval, DefaultInterval)
}

// SourceWebhook implements Source.
func (g *GitRepository) SourceWebhook() *SourceWebhook { return g.Spec.Webhook }

// SecretNames implements Source.
func (g *GitRepository) SecretNames() []string { return g.Spec.SecretNames() }

// SourceStatus implements Source.
func (g *GitRepository) SourceStatus() SourceStatus { return SourceStatus(g.Status) }

// SetSourceStatus implements Source.
func (g *GitRepository) SetSourceStatus(status SourceStatus) { g.Status = GitRepositoryStatus(status) }

// SourceKind implements Source.
func (*HelmRegistry) SourceKind() string { return KindHelmRegistry }

// SourceURL implements Source.
func (h *HelmRegistry) SourceURL() string { return h.Spec.URL }

// SourceInterval implements Source.
func (h *HelmRegistry) SourceInterval() time.Duration {
	return intervalOr(h.Spec.Interval, DefaultRegistryInterval)
}

// SourceWebhook implements Source.
func (h *HelmRegistry) SourceWebhook() *SourceWebhook { return h.Spec.Webhook }

// SecretNames implements Source.
func (h *HelmRegistry) SecretNames() []string { return h.Spec.SecretNames() }

// SourceStatus implements Source.
func (h *HelmRegistry) SourceStatus() SourceStatus { return h.Status }

// SetSourceStatus implements Source.
func (h *HelmRegistry) SetSourceStatus(status SourceStatus) { h.Status = status }

// SourceKind implements Source.
func (*OCIRegistry) SourceKind() string { return KindOCIRegistry }

// SourceURL implements Source.
func (o *OCIRegistry) SourceURL() string { return o.Spec.URL }

// SourceInterval implements Source.
func (o *OCIRegistry) SourceInterval() time.Duration {
	return intervalOr(o.Spec.Interval, DefaultRegistryInterval)
}

// SourceWebhook implements Source.
func (o *OCIRegistry) SourceWebhook() *SourceWebhook { return o.Spec.Webhook }

// SecretNames implements Source.
func (o *OCIRegistry) SecretNames() []string { return o.Spec.SecretNames() }

// SourceStatus implements Source.
func (o *OCIRegistry) SourceStatus() SourceStatus { return o.Status }

// SetSourceStatus implements Source.
func (o *OCIRegistry) SetSourceStatus(status SourceStatus) { o.Status = status }

func intervalOr(interval *metav1.Duration, otherwise time.Duration) time.Duration {
	if interval == nil || interval.Duration <= 0 {
		return otherwise
	}
	return interval.Duration
}
