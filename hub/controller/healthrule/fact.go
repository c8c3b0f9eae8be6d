// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// ownDomain of labels and annotations that the hub writes: they are no facts.
const ownDomain = "convoy.kumodo.io/"

// factsOf gives the values of paths, of those that are there.
func factsOf(paths []string, release *corev1alpha1.Release, cluster *corev1alpha1.Cluster) map[string]string {
	var out map[string]string
	for _, path := range paths {
		value, ok := fact(path, release, cluster)
		if !ok || len(value) > maxFactBytes {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[path] = value
	}
	return out
}

// fact is one value, by a path that pkg/expression gives. A key may have dots.
func fact(path string, release *corev1alpha1.Release, cluster *corev1alpha1.Cluster) (string, bool) {
	of, key, _ := strings.Cut(path, ".")
	if of == "cluster" {
		if key == "name" {
			return release.Spec.ClusterRef.Name, true // always, whatever the metadata say
		}
		if cluster == nil {
			return "", false
		}
		value, ok := cluster.Spec.Metadata[key]
		return value, ok
	}
	field, inner, _ := strings.Cut(key, ".")
	switch field {
	case "name":
		return release.Name, true
	case "namespace":
		return release.Namespace, true
	case "targetNamespace":
		if release.Spec.TargetNamespace != "" {
			return release.Spec.TargetNamespace, true
		}
		return release.Namespace, true
	case "labels":
		return written(release.Labels, inner)
	case "annotations":
		return written(release.Annotations, inner)
	}
	return "", false
}

// written is a label or annotation that says something of what is wanted.
func written(all map[string]string, key string) (string, bool) {
	if strings.HasPrefix(key, ownDomain) || key == corev1.LastAppliedConfigAnnotation {
		return "", false
	}
	value, ok := all[key]
	return value, ok
}
