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
	if helm := r.Spec.Content.Helm; helm != nil {
		if helm.CRDs == "" {
			helm.CRDs = CRDsApply
		}
		for i := range helm.ValuesFrom {
			if helm.ValuesFrom[i].Key == "" {
				helm.ValuesFrom[i].Key = DefaultValuesKey
			}
		}
	}
	for i := range r.Spec.Mutations {
		if from := r.Spec.Mutations[i].From; from != nil && from.Kind == "" {
			from.Kind = ReferenceConfigMap
		}
	}
	if r.Spec.Images.Policy == "" {
		r.Spec.Images.Policy = ImagesAsIs
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

// SecretNames lists the Secrets that the spec refers to by a fixed name, each once,
// in the order values, mutations, images. A name that holds a template is not one: it
// is checked where it is resolved, and only ConfigMaps may have one.
func (s *ReleaseSpec) SecretNames() []string {
	var names []string
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	if s.Content.Helm != nil {
		for _, from := range s.Content.Helm.ValuesFrom {
			if from.Kind == ReferenceSecret {
				add(from.Name)
			}
		}
	}
	for _, mutation := range s.Mutations {
		if mutation.From != nil && mutation.From.Kind == ReferenceSecret {
			add(mutation.From.Name)
		}
	}
	for _, ref := range s.Images.SecretRefs {
		add(ref.Name)
	}
	return names
}

func truePointer() *bool {
	yes := true
	return &yes
}
