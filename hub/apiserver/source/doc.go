// SPDX-License-Identifier: Apache-2.0

// Package source stores and serves the kinds of sources: GitRepositories,
// HelmRegistries and OCIRegistries, each with the subresource status. It stands
// before the flow: a source says where content comes from, and this room says
// which Secrets may be used to get it.
package source
