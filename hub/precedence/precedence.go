// SPDX-License-Identifier: Apache-2.0

// Package precedence knows which Releases come before which: those that
// spec.dependsOn names, and those of a lower spec.clusterWave on the same Cluster. It
// stands before deliver: where there is a circle, nothing in it could ever be ordered,
// so that the API server refuses one, and the Release controller names one that came
// to be all the same.
package precedence

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// maxSeen is how many Releases are looked at before a circle is no longer searched
// for: then it is found by those in it that wait.
const maxSeen = 1000

// Releases are those of the hub, read only.
type Releases interface {
	Release(key types.NamespacedName) (*v1alpha1.Release, bool)
	ReleasesByCluster(cluster types.NamespacedName) []*v1alpha1.Release
}

// Circle is a way from a Release over those that come before it back to itself, as a
// text that names each: "a dependsOn b, b waits for the clusterWave of a". Empty:
// there is none. The Release is taken as it is given, whatever is stored under its name.
func Circle(start *v1alpha1.Release, releases Releases) string {
	s := search{start: start, releases: releases, seen: map[string]bool{}}
	if !s.from(start) {
		return ""
	}
	slices.Reverse(s.way)
	return strings.Join(s.way, ", ")
}

// search is a walk in depth. All is in one namespace, so that names are enough.
type search struct {
	start    *v1alpha1.Release
	releases Releases
	seen     map[string]bool
	// way back to the start, the last step first.
	way []string
}

// from says whether the start comes before a Release.
func (s *search) from(release *v1alpha1.Release) bool {
	for _, on := range release.Spec.DependsOn {
		if s.step(on.Name) {
			s.way = append(s.way, release.Name+" dependsOn "+on.Name)
			return true
		}
	}
	for _, name := range s.lower(release) {
		if s.step(name) {
			s.way = append(s.way, release.Name+" waits for the clusterWave of "+name)
			return true
		}
	}
	return false
}

func (s *search) step(name string) bool {
	if name == s.start.Name {
		return true
	}
	if s.seen[name] || len(s.seen) >= maxSeen {
		return false
	}
	s.seen[name] = true
	next, ok := s.releases.Release(types.NamespacedName{Namespace: s.start.Namespace, Name: name})
	return ok && next.DeletionTimestamp == nil && s.from(next)
}

// lower are the Releases of lower waves on the Cluster that lead anywhere: those that
// depend on others, and the start. The others lead to waves lower still, and these are
// among them.
func (s *search) lower(release *v1alpha1.Release) []string {
	var names []string
	cluster := types.NamespacedName{Namespace: s.start.Namespace, Name: release.Spec.ClusterRef.Name}
	for _, other := range s.releases.ReleasesByCluster(cluster) {
		if other.Name != s.start.Name && other.DeletionTimestamp == nil && other.Spec.ClusterWave < release.Spec.ClusterWave && len(other.Spec.DependsOn) > 0 {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	if s.start.Name != release.Name && s.start.Spec.ClusterRef == release.Spec.ClusterRef && s.start.Spec.ClusterWave < release.Spec.ClusterWave {
		names = append(names, s.start.Name)
	}
	return names
}
