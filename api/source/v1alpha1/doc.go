// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the API group source.convoy.kumodo.io:
// where content comes from. They stand at the very start of the flow; a source
// object is only checked for reachability, content is fetched on demand.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.kumodo.convoy.source.v1alpha1
// +groupName=source.convoy.kumodo.io
package v1alpha1
