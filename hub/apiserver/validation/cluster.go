// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"sort"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// clusterName: a Cluster's name becomes part of labels, certificates and names
// made of it, so it is one DNS label.
func clusterName(name string, p *field.Path) field.ErrorList {
	return requiredName(name, p, apivalidation.NameIsDNSLabel)
}

// Cluster checks one that is to be created or updated.
func Cluster(c *v1alpha1.Cluster) field.ErrorList {
	errs := clusterName(c.Name, field.NewPath("metadata", "name"))
	spec := field.NewPath("spec")
	errs = append(errs, enum(c.Spec.ConnectionMode, spec.Child("connectionMode"), v1alpha1.ConnectionModeAgent)...)
	return append(errs, clusterMetadata(c.Spec.Metadata, spec.Child("metadata"))...)
}

// ClusterUpdate checks a change of the main resource.
func ClusterUpdate(c, old *v1alpha1.Cluster) field.ErrorList {
	return append(apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")), Cluster(c)...)
}

// ClusterStatusUpdate checks a change of the status.
func ClusterStatusUpdate(c, old *v1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	status := field.NewPath("status")
	if n := len(c.Status.APIVersions); n > MaxAPIVersions {
		errs = append(errs, field.TooMany(status.Child("apiVersions"), n, MaxAPIVersions))
	}
	if j := c.Status.Join; j != nil {
		errs = append(errs, publicKey(j.PublicKey, status.Child("join", "publicKey"))...)
	}
	return errs
}

func clusterMetadata(m map[string]string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(m) > MaxClusterMetadataKeys {
		errs = append(errs, field.TooMany(p, len(m), MaxClusterMetadataKeys))
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		switch {
		case k == "":
			errs = append(errs, field.Invalid(p, k, "a key must not be empty"))
		case len(k) > MaxClusterMetadataKey:
			errs = append(errs, field.TooLong(p.Key(k), "", MaxClusterMetadataKey))
		case len(m[k]) > MaxClusterMetadataValue:
			errs = append(errs, field.TooLong(p.Key(k), "", MaxClusterMetadataValue))
		}
	}
	return errs
}

// JoinRequest checks a request for a join token of the named Cluster.
func JoinRequest(j *v1alpha1.JoinRequest, cluster string) field.ErrorList {
	var errs field.ErrorList
	if j.Name != "" && j.Name != cluster {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name, "must be the name of the Cluster in the path, or empty"))
	}
	spec := field.NewPath("spec")
	errs = append(errs, publicKey(j.Spec.PublicKey, spec.Child("publicKey"))...)
	return append(errs, duration(j.Spec.TTL, spec.Child("ttl"), MinJoinTTL, MaxJoinTTL)...)
}
