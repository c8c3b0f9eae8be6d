// SPDX-License-Identifier: Apache-2.0

// Package source brings content into the hub: the first step of the flow source ->
// render -> store -> deliver -> apply -> observe -> report. It takes GitRepositories,
// HelmRegistries and OCIRegistries and gives revisions and snapshots.
//
// All network traffic of sources goes through one Coordinator. It keeps for each
// question to a source what it was last answered, with its age, so that a Release
// whose source was looked at recently costs no network call; it fetches each
// revision once, however many Releases want it, into a bounded cache on disk that
// survives a restart; and it asks no host that wants to be left alone.
//
// Refs, indexes and tags are read in the hub (packages git, helmrepo and oci, bounded
// text); packs and archives are unpacked in a fetch worker (package worker), a process
// of its own for each fetch. Credentials are read from their Secret for every use, go to
// a worker over its stdin, and are in no argument, environment, file, error or log.
package source
