// SPDX-License-Identifier: Apache-2.0

// Package charts has nothing but tests: that Helm makes of the charts, and kustomize
// of the overlays, the objects that manifests/ has. It is a module of its own so that
// neither of the two becomes a dependency of convoy, and it stands before the flow,
// where hub and agents are installed.
package charts
