// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests the hub's API server behind a real host cluster: its
// aggregator, RBAC, admission, namespace and garbage collection. The hub's other
// rooms are not there; the test takes finalizers off in their place. It stands
// outside the flow.
package apiserver
