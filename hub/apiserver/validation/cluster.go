// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/url"
	"sort"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
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
	errs = append(errs, enum(c.Spec.ConnectionMode, spec.Child("connectionMode"),
		v1alpha1.ConnectionModeAgent, v1alpha1.ConnectionModeAgentless, v1alpha1.ConnectionModeInCluster)...)
	errs = append(errs, agentless(&c.Spec, spec.Child("agentless"))...)
	errs = append(errs, allowed(c.Spec.Allowed, spec.Child("allowed"))...)
	return append(errs, clusterMetadata(c.Spec.Metadata, spec.Child("metadata"))...)
}

// ClusterUpdate checks a change of the main resource.
func ClusterUpdate(c, old *v1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	errs = append(errs, apivalidation.ValidateImmutableField(c.Spec.ConnectionMode, old.Spec.ConnectionMode, spec.Child("connectionMode"))...)
	if old.DeletionTimestamp != nil && c.Spec.DeletionPolicy.PruneReleases && !old.Spec.DeletionPolicy.PruneReleases {
		// It would delete Releases that nobody counted when the Cluster was deleted.
		errs = append(errs, field.Forbidden(spec.Child("deletionPolicy", "pruneReleases"), "cannot be turned on while the Cluster is being deleted"))
	}
	return append(errs, Cluster(c)...)
}

// agentless checks how the hub reaches a cluster by itself. Types of auth that
// this build does not know are accepted: the Cluster's status says Unsupported.
func agentless(s *v1alpha1.ClusterSpec, p *field.Path) field.ErrorList {
	a := s.Agentless
	switch {
	case s.ConnectionMode != v1alpha1.ConnectionModeAgentless && a != nil:
		return field.ErrorList{field.Forbidden(p, "only with connectionMode agentless")}
	case s.ConnectionMode != v1alpha1.ConnectionModeAgentless:
		return nil
	case a == nil:
		return field.ErrorList{field.Required(p, "says how the hub reaches the cluster")}
	}
	errs := serverURL(a.Server, p.Child("server"))
	errs = append(errs, secretKey(a.CAPublicCertRef, p.Child("caPublicCertRef"))...)
	auth := p.Child("auth")
	switch a.Auth.Type {
	case "":
		errs = append(errs, field.Required(auth.Child("type"), v1alpha1.AuthTypeKubeconfig))
	case v1alpha1.AuthTypeKubeconfig:
		if a.Auth.Kubeconfig == nil {
			errs = append(errs, field.Required(auth.Child("kubeconfig"), "with type kubeconfig"))
		}
	default:
		if len(a.Auth.Type) > MaxAuthType {
			errs = append(errs, field.TooLong(auth.Child("type"), "", MaxAuthType))
		}
		if a.Auth.Kubeconfig != nil {
			errs = append(errs, field.Forbidden(auth.Child("kubeconfig"), "only with type kubeconfig"))
		}
	}
	if k := a.Auth.Kubeconfig; k != nil {
		errs = append(errs, secretKey(&k.SecretRef, auth.Child("kubeconfig", "secretRef"))...)
	}
	return errs
}

// secretKey checks a reference to one key of a Secret.
func secretKey(ref *v1alpha1.SecretKeyReference, p *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	errs := requiredName(ref.Name, p.Child("name"), apivalidation.NameIsDNSSubdomain)
	if ref.Key == "" {
		return append(errs, field.Required(p.Child("key"), ""))
	}
	for _, msg := range utilvalidation.IsConfigMapKey(ref.Key) {
		errs = append(errs, field.Invalid(p.Child("key"), ref.Key, msg))
	}
	return errs
}

// serverURL checks the address of an API server. It is shown to whoever may read
// the Cluster, so that it must hold nothing else.
func serverURL(raw string, p *field.Path) field.ErrorList {
	if raw == "" {
		return nil
	}
	if len(raw) > MaxURL {
		return field.ErrorList{field.TooLong(p, "", MaxURL)}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return field.ErrorList{field.Invalid(p, "(not shown)", "must be https://host:port")}
	}
	return nil
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
	errs := requestName(j.Name, cluster, "Cluster")
	spec := field.NewPath("spec")
	errs = append(errs, publicKey(j.Spec.PublicKey, spec.Child("publicKey"))...)
	return append(errs, duration(j.Spec.TTL, spec.Child("ttl"), MinJoinTTL, MaxJoinTTL)...)
}

// RevokeRequest checks a request to revoke the identity of the named Cluster.
func RevokeRequest(r *v1alpha1.RevokeRequest, cluster string) field.ErrorList {
	return requestName(r.Name, cluster, "Cluster")
}
