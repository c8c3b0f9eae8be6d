// SPDX-License-Identifier: Apache-2.0

// Package source brings content into the hub: the first step of the flow source ->
// render -> store -> deliver -> apply -> observe -> report. It takes GitRepository
// objects and gives revisions and snapshots.
//
// All network traffic of sources goes through one Coordinator. It keeps for each
// (source, ref) the commit that it was last seen at, with its age, so that a
// Release whose source was looked at recently costs no network call; and it
// fetches each (source, commit) once, however many Releases want it, into a
// bounded cache on disk that survives a restart.
//
// Refs are listed in the hub (package git, bounded text); packs are unpacked in a
// fetch worker (package worker), a process of its own for each fetch. Credentials
// are read from their Secret for every use, go to a worker over its stdin, and
// are in no argument, environment, file, error or log.
package source
