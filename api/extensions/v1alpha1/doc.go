// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the API group extensions.convoy.kumodo.io: rules
// that say how healthy an object is. They stand beside the flow: the hub compiles them
// once and ships them with orders, the agent judges by them in the observe step.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.kumodo.convoy.extensions.v1alpha1
// +groupName=extensions.convoy.kumodo.io
package v1alpha1
