// SPDX-License-Identifier: Apache-2.0

// Package install writes what installs an agent: the YAML that the plugin's join
// prints and that manifests/agent has as examples, and the values for the agent's
// chart, which both come from. It stands before the flow, where a cluster becomes
// one that orders can be delivered to.
package install

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/charts"
)

// Profiles say what an agent's account may do in its cluster.
const (
	// ProfilePlatform binds it to cluster-admin.
	ProfilePlatform = "platform"
	// ProfileShared binds it to the role admin in named namespaces, and to nothing
	// else.
	ProfileShared = "shared"
)

// maxNamespaces of the profile shared: each costs the agent a watch for each kind.
const maxNamespaces = 50

// Agent is what one agent's installation differs in.
type Agent struct {
	// ClusterNamespace and ClusterName of the Cluster object on the hub; both are
	// names that Kubernetes accepted.
	ClusterNamespace, ClusterName string
	// HubID names the hub that the agent will obey.
	HubID string
	// Image of the agent.
	Image string
	// Profile is one of the two above; empty: ProfilePlatform.
	Profile string
	// Namespaces that the agent may apply to; with ProfileShared only.
	Namespaces []string
	// Token is the secret half: whoever has it can join as this Cluster, once.
	Token string
	// ExpiresAt is the end of the token.
	ExpiresAt string
}

// ExpiresAt formats the end of a token for Agent.
func ExpiresAt(end time.Time) string { return end.UTC().Format(time.RFC3339) }

// Errors of an installation.
var (
	// ErrNotPrintable means that a value would end the comment or string it stands in.
	ErrNotPrintable = errors.New("contains a control character")
	// ErrProfile means that profile and namespaces do not go together.
	ErrProfile = errors.New("the profile is platform, or shared with the namespaces that it is for")
)

// CheckProfile says what is wrong with a profile and its namespaces, before anything
// is asked of the hub.
func CheckProfile(profile string, namespaces []string) error {
	switch {
	case profile == ProfilePlatform && len(namespaces) > 0:
		return fmt.Errorf("%w: platform is for all namespaces; add --profile shared", ErrProfile)
	case profile == ProfileShared && len(namespaces) == 0:
		return fmt.Errorf("%w: profile shared needs the namespaces of its cluster that the agent may apply to, as in --namespaces shop,shop-jobs", ErrProfile)
	case profile != ProfilePlatform && profile != ProfileShared:
		return fmt.Errorf("%w, not %q", ErrProfile, profile)
	case len(namespaces) > maxNamespaces:
		return fmt.Errorf("%w: at most %d, not %d", ErrProfile, maxNamespaces, len(namespaces))
	}
	for _, namespace := range namespaces {
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			return fmt.Errorf("%w: %q is no name of a namespace", ErrProfile, namespace)
		}
	}
	return nil
}

// values are what the agent's chart needs beside its defaults.
func (a Agent) values() (map[string]any, error) {
	profile := cmp.Or(a.Profile, ProfilePlatform)
	if err := CheckProfile(profile, a.Namespaces); err != nil {
		return nil, err
	}
	for field, value := range map[string]string{
		"cluster namespace": a.ClusterNamespace, "cluster name": a.ClusterName,
		"hub id": a.HubID, "image": a.Image, "expiry": a.ExpiresAt,
	} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return nil, fmt.Errorf("%s: %w", field, ErrNotPrintable)
		}
	}
	values := map[string]any{
		"cluster": map[string]any{"namespace": a.ClusterNamespace, "name": a.ClusterName},
		"hubID":   a.HubID, "image": a.Image, "profile": profile,
		"join": map[string]any{"token": a.Token, "expiresAt": a.ExpiresAt},
	}
	if len(a.Namespaces) > 0 {
		values["namespaces"] = slices.Compact(slices.Sorted(slices.Values(a.Namespaces)))
	}
	return values, nil
}

// YAML returns the objects, in the order in which they are to be applied.
func (a Agent) YAML() ([]byte, error) {
	values, err := a.values()
	if err != nil {
		return nil, err
	}
	values["createNamespace"] = true
	files, err := charts.Render(charts.Agent, values)
	if err != nil {
		return nil, fmt.Errorf("writing the agent's manifests: %w", err)
	}
	return charts.Join(files), nil
}

// Values returns what the agent's chart needs beside its defaults, as a values file.
func (a Agent) Values() ([]byte, error) {
	values, err := a.values()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("writing the values: %w", err)
	}
	return text, nil
}
