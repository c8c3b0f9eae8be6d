// SPDX-License-Identifier: Apache-2.0

// Package release stores and serves Releases, with the subresources status, sync
// and confirm, and holds deletions that are more than the budget. It stands before
// the flow: a Release starts it.
package release

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// kind is what is particular to Releases.
var kind = &strategy.Kind[*v1alpha1.Release]{
	New:     func() *v1alpha1.Release { return &v1alpha1.Release{} },
	NewList: func() runtime.Object { return &v1alpha1.ReleaseList{} },
	Version: v1alpha1.SchemeGroupVersion, Plural: "releases", Singular: "release",
	ShortNames: []string{"rel"},

	Fields: func(r *v1alpha1.Release) fields.Set {
		return fields.Set{scheme.FieldClusterRefName: r.Spec.ClusterRef.Name}
	},
	// A Release has its Cluster's shard, so that a cluster's Releases stay together.
	ShardBy:   func(r *v1alpha1.Release) string { return r.Spec.ClusterRef.Name },
	Finalizer: v1alpha1.FinalizerRelease,

	Changed: func(r, old *v1alpha1.Release) bool { return !equality.Semantic.DeepEqual(r.Spec, old.Spec) },
	// The references to Secrets were checked before this is called (see storage.go).
	Created: func(r *v1alpha1.Release) {
		r.Status = v1alpha1.ReleaseStatus{CheckedSecrets: r.Spec.SecretNames()}
		// A new Release has no deletions to confirm: one that was copied brought that along.
		delete(r.Annotations, v1alpha1.AnnotationConfirmDeletions)
	},
	// They were, too, for the user who changes what is done with the Secrets.
	Updated: func(r, old *v1alpha1.Release) {
		r.Status = old.Status
		if usesSecretsAnew(r, old) {
			r.Status.CheckedSecrets = r.Spec.SecretNames()
		}
	},
	// Nobody adds a checked reference by writing the status.
	Reported: func(r, old *v1alpha1.Release) {
		r.Spec = old.Spec
		r.Status.CheckedSecrets = old.Status.CheckedSecrets
	},
	KeptStatus: []fieldpath.Path{fieldpath.MakePathOrDie("status", "checkedSecrets")},

	Validate:       validation.Release,
	ValidateUpdate: validation.ReleaseUpdate,
	ValidateStatus: validation.ReleaseStatusUpdate,
}
