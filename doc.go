// SPDX-License-Identifier: Apache-2.0

// Package convoy holds no code: it is the tour, and its tests are the rules of
// the house (who may import whom, one comment a package, docs that hold).
//
// What happens to a Release, room by room:
//
//	source   hub/source    fetches a Git repository once for all that want it
//	render   hub/render    turns files into objects, in a worker process
//	store    hub/store     keeps renders under their digest
//	deliver  hub/deliver   signs orders; hub/gateway brings them to agents
//	apply    pkg/engine    dry run, apply in waves, prune, at the edge
//	observe  pkg/engine    watches what was applied, repairs drift
//	report   hub/report    folds what agents say into status
//
// Around them: api (the kinds), hub/apiserver (serves them), hub/cache (the one
// copy in memory), hub/controller (decides what is done next), hub/local (runs the
// engine in the hub, for Clusters without an agent), pkg/manifest (the render's
// format), pkg/tunnel and agent/link (the wire), pkg/state (what an engine keeps). hub/main.go and agent/main.go put them together. docs/design.md
// has the same on a page, with the reasons.
package convoy
