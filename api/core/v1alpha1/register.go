// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the kinds in this package.
const GroupName = "core.convoy.kumodo.io"

var (
	// SchemeGroupVersion is the group and version of the kinds in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds for clients. The hub's API server has a
	// scheme of its own, because it serves the same Go types as internal ones.
	AddToScheme = SchemeBuilder.AddToScheme
)

// KnownTypes lists the kinds of this group, so that a scheme that registers
// them under another version (the API server's internal one) misses none.
func KnownTypes() []runtime.Object {
	return []runtime.Object{
		&Cluster{}, &ClusterList{},
		&JoinRequest{}, &RevokeRequest{},
		&Release{}, &ReleaseList{},
		&SyncRequest{}, &ConfirmRequest{}, &ReleaseLifecycle{}, &Preview{}, &PreviewOptions{},
		&ReleaseHealth{}, &ReleaseDiff{}, &ReleaseHistory{},
		&ReleaseInventory{}, &ReleaseInventoryList{},
		&Hub{}, &HubList{}, &BackupRequest{}, &RestoreRequest{},
	}
}

// Resource qualifies a resource name with this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, KnownTypes()...)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
