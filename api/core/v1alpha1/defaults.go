// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the fields that a user may leave out.
const (
	DefaultContentPath = "."
	DefaultInterval    = 5 * time.Minute
	DefaultTimeout     = 5 * time.Minute
	DefaultJoinTTL     = time.Hour
)

// SetClusterDefaults fills in what the user left out.
func SetClusterDefaults(c *Cluster) {
	if c.Spec.ConnectionMode == "" {
		c.Spec.ConnectionMode = ConnectionModeAgent
	}
}

// SetReleaseDefaults fills in what the user left out.
func SetReleaseDefaults(r *Release) {
	if r.Spec.Content.Path == "" {
		r.Spec.Content.Path = DefaultContentPath
	}
	p := &r.Spec.SyncPolicy
	if p.Automatic == nil {
		p.Automatic = truePointer()
	}
	if p.Interval == nil {
		p.Interval = &metav1.Duration{Duration: DefaultInterval}
	}
	if p.Timeout == nil {
		p.Timeout = &metav1.Duration{Duration: DefaultTimeout}
	}
	if p.Conflicts == "" {
		p.Conflicts = ConflictsFail
	}
	if p.Immutable == "" {
		p.Immutable = ImmutableReport
	}
	if p.Prune.Orphaned == nil {
		p.Prune.Orphaned = truePointer()
	}
}

// SetJoinRequestDefaults fills in what the caller left out.
func SetJoinRequestDefaults(j *JoinRequest) {
	if j.Spec.TTL == nil {
		j.Spec.TTL = &metav1.Duration{Duration: DefaultJoinTTL}
	}
}

// SecretNames lists the Secrets that the spec refers to, each once, in the order
// kubeconfig, CA.
func (s *ClusterSpec) SecretNames() []string {
	var names []string
	if s.Agentless == nil {
		return nil
	}
	kubeconfig, ca := s.Agentless.Auth.Kubeconfig, s.Agentless.CAPublicCertRef
	if kubeconfig != nil {
		names = append(names, kubeconfig.SecretRef.Name)
	}
	if ca != nil && (kubeconfig == nil || kubeconfig.SecretRef.Name != ca.Name) {
		names = append(names, ca.Name)
	}
	return names
}

func truePointer() *bool {
	yes := true
	return &yes
}
