// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"maps"
	"slices"
)

// rule judges an object of one kind that is not being deleted, and whose status is not
// about another generation.
type rule func(object) Verdict

// builtin are the rules of the kinds that Kubernetes itself serves. Those of other projects
// are added to it by well-known kinds' files.
var builtin = merged(
	map[groupKind]rule{
		{"apps", "Deployment"}:                                         deployment,
		{"apps", "StatefulSet"}:                                        statefulSet,
		{"apps", "DaemonSet"}:                                          daemonSet,
		{"apps", "ReplicaSet"}:                                         replicaSet,
		{"", "ReplicationController"}:                                  replicaSet,
		{"extensions", "Deployment"}:                                   deployment, // as older servers still show them
		{"extensions", "DaemonSet"}:                                    daemonSet,
		{"extensions", "ReplicaSet"}:                                   replicaSet,
		{"extensions", "NetworkPolicy"}:                                inert,
		{"", "Pod"}:                                                    pod,
		{"batch", "Job"}:                                               job,
		{"batch", "CronJob"}:                                           cronJob,
		{"", "Service"}:                                                service,
		{"networking.k8s.io", "Ingress"}:                               inert, // many controllers never write an address
		{"extensions", "Ingress"}:                                      inert,
		{"", "PersistentVolumeClaim"}:                                  claim,
		{"", "PersistentVolume"}:                                       volume,
		{"", "Namespace"}:                                              namespace,
		{"", "Node"}:                                                   node,
		{"autoscaling", "HorizontalPodAutoscaler"}:                     autoscaler,
		{"policy", "PodDisruptionBudget"}:                              disruptionBudget,
		{"apiextensions.k8s.io", "CustomResourceDefinition"}:           definition,
		{"apiregistration.k8s.io", "APIService"}:                       apiService,
		{"certificates.k8s.io", "CertificateSigningRequest"}:           signingRequest,
		{"flowcontrol.apiserver.k8s.io", "FlowSchema"}:                 flowSchema,
		{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"}: inert,
		{"snapshot.storage.k8s.io", "VolumeSnapshot"}:                  snapshot,
		{"snapshot.storage.k8s.io", "VolumeSnapshotContent"}:           snapshot,
	},
	inertKinds(),
	wellKnown,
)

// inertKinds are kinds of Kubernetes that no controller works off: what is there is all
// there is to it.
func inertKinds() map[groupKind]rule {
	kinds := map[string][]string{
		"":                             {"ConfigMap", "Secret", "ServiceAccount", "Endpoints", "LimitRange", "ResourceQuota", "Event", "PodTemplate"},
		"rbac.authorization.k8s.io":    {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"},
		"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
		"storage.k8s.io":               {"StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttributesClass"},
		"networking.k8s.io":            {"NetworkPolicy", "IngressClass"},
		"scheduling.k8s.io":            {"PriorityClass"},
		"node.k8s.io":                  {"RuntimeClass"},
		"coordination.k8s.io":          {"Lease"},
		"discovery.k8s.io":             {"EndpointSlice"},
	}
	out := map[groupKind]rule{}
	for group, names := range kinds {
		for _, name := range names {
			out[groupKind{group, name}] = inert
		}
	}
	return out
}

func inert(object) Verdict { return healthy() }

// merged puts tables together. A kind must be in one only; a test holds that.
func merged(tables ...map[groupKind]rule) map[groupKind]rule {
	out := map[groupKind]rule{}
	for _, table := range tables {
		maps.Copy(out, table)
	}
	return out
}

// GroupKind names a kind.
type GroupKind struct{ Group, Kind string }

// Kinds lists the kinds that have a built-in rule, sorted.
func Kinds() []GroupKind {
	out := make([]GroupKind, 0, len(builtin))
	for gk := range builtin {
		out = append(out, GroupKind{Group: gk.group, Kind: gk.kind})
	}
	slices.SortFunc(out, func(a, b GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}
