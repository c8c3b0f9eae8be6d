// SPDX-License-Identifier: Apache-2.0

// Package cluster stores and serves Clusters, with the subresources status, join,
// revoke and confirm. It stands before the flow: a Cluster says where Releases go.
package cluster

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// kind is what is particular to Clusters.
var kind = &strategy.Kind[*v1alpha1.Cluster]{
	New:     func() *v1alpha1.Cluster { return &v1alpha1.Cluster{} },
	NewList: func() runtime.Object { return &v1alpha1.ClusterList{} },
	Version: v1alpha1.SchemeGroupVersion, Plural: "clusters", Singular: "cluster",
	ShortNames: []string{"cvc"},

	ShardBy:   func(c *v1alpha1.Cluster) string { return c.Name },
	Finalizer: v1alpha1.FinalizerCluster,

	// A list that permits nothing is not one that is not there.
	Changed: func(c, old *v1alpha1.Cluster) bool {
		return !equality.Semantic.DeepEqual(c.Spec, old.Spec) || !reflect.DeepEqual(c.Spec.Allowed, old.Spec.Allowed)
	},
	// The references to Secrets were checked before this is called (see secrets.go).
	Created: func(c *v1alpha1.Cluster) {
		c.Status = v1alpha1.ClusterStatus{CheckedSecrets: c.Spec.SecretNames()}
	},
	Updated: func(c, old *v1alpha1.Cluster) {
		c.Status = old.Status
		if redirected(c, old) {
			c.Status = *old.Status.DeepCopy()
			c.Status.CheckedSecrets = c.Spec.SecretNames()
		}
	},
	// Nobody adds a checked reference by writing the status.
	Reported: func(c, old *v1alpha1.Cluster) {
		c.Spec = old.Spec
		c.Status.CheckedSecrets = old.Status.CheckedSecrets
	},
	KeptStatus: []fieldpath.Path{fieldpath.MakePathOrDie("status", "checkedSecrets")},

	Validate:       validation.Cluster,
	ValidateUpdate: validation.ClusterUpdate,
	ValidateStatus: validation.ClusterStatusUpdate,
}
