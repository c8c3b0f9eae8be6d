// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the API group core.convoy.kumodo.io:
// Cluster (a target), Release (one application on one Cluster) and
// ReleaseInventory (what of it was applied). Users write the first two on the
// hub; every step of the flow from source to report reads them.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.kumodo.convoy.core.v1alpha1
// +groupName=core.convoy.kumodo.io
package v1alpha1
