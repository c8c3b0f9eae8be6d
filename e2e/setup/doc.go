// SPDX-License-Identifier: Apache-2.0

// Package setup tests the ways to install hub and agents on real control planes: the
// overlay for an external etcd, the profile for a shared cluster, and that restricted
// Pod Security takes the pods. It looks at the whole flow, source -> render -> store ->
// deliver -> apply -> observe -> report.
package setup
