// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"strconv"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Wave reads the wave of an object from its annotations: convoy's own, else
// Argo CD's, else 0.
func Wave(annotations map[string]string) (int32, error) {
	for _, key := range []string{v1alpha1.AnnotationSyncWave, v1alpha1.AnnotationArgoSyncWave} {
		text, ok := annotations[key]
		if !ok {
			continue
		}
		wave, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("annotation %s must be a whole number in quotes", key)
		}
		return int32(wave), nil
	}
	return 0, nil
}

// kindOrder lists kinds that must be there before others can work, in the order
// in which they are applied inside a wave. Kinds without a line come after the
// workloads (custom resources need their controllers' definitions, which come
// first), and admission webhooks come last: one that guards objects of the same
// render must not stop them before its server runs.
var kindOrder = func() map[[2]string]int {
	steps := [][][2]string{
		{{"", "Namespace"}},
		{{"apiextensions.k8s.io", "CustomResourceDefinition"}},
		{{"scheduling.k8s.io", "PriorityClass"}, {"node.k8s.io", "RuntimeClass"}, {"storage.k8s.io", "StorageClass"}, {"storage.k8s.io", "CSIDriver"}, {"networking.k8s.io", "IngressClass"}, {"gateway.networking.k8s.io", "GatewayClass"}},
		{{"", "ResourceQuota"}, {"", "LimitRange"}, {"networking.k8s.io", "NetworkPolicy"}, {"policy", "PodDisruptionBudget"}},
		{{"", "ServiceAccount"}},
		{{"", "Secret"}},
		{{"", "ConfigMap"}},
		{{"", "PersistentVolume"}},
		{{"", "PersistentVolumeClaim"}},
		{{"rbac.authorization.k8s.io", "ClusterRole"}},
		{{"rbac.authorization.k8s.io", "ClusterRoleBinding"}},
		{{"rbac.authorization.k8s.io", "Role"}},
		{{"rbac.authorization.k8s.io", "RoleBinding"}},
		{{"", "Service"}, {"", "Endpoints"}, {"discovery.k8s.io", "EndpointSlice"}},
		{{"apps", "DaemonSet"}},
		{{"", "Pod"}},
		{{"", "ReplicationController"}},
		{{"apps", "ReplicaSet"}},
		{{"apps", "Deployment"}},
		{{"autoscaling", "HorizontalPodAutoscaler"}},
		{{"apps", "StatefulSet"}},
		{{"batch", "Job"}},
		{{"batch", "CronJob"}},
		{{"networking.k8s.io", "Ingress"}},
		{{"apiregistration.k8s.io", "APIService"}},
	}
	order := make(map[[2]string]int)
	for i, step := range steps {
		for _, kind := range step {
			order[kind] = i
		}
	}
	last := 100
	order[[2]string{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy"}] = last
	order[[2]string{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"}] = last + 1
	order[[2]string{"admissionregistration.k8s.io", "MutatingWebhookConfiguration"}] = last + 2
	order[[2]string{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"}] = last + 2
	return order
}()

// unlistedKind is the place of kinds without a line of their own.
const unlistedKind = 50

// KindOrder gives the place of a kind inside its wave; lower comes first.
func KindOrder(group, kind string) int {
	if place, ok := kindOrder[[2]string{group, kind}]; ok {
		return place
	}
	return unlistedKind
}

// compare is apply order: wave, kind, namespace, name, then what is left of the
// identity, so that equal sets have equal bytes.
func compare(a, b *Object) int {
	return cmp.Or(
		cmp.Compare(a.Wave, b.Wave),
		cmp.Compare(KindOrder(a.Group, a.Kind), KindOrder(b.Group, b.Kind)),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Kind, b.Kind),
	)
}
