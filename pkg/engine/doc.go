// SPDX-License-Identifier: Apache-2.0

// Package engine carries orders out on one cluster and keeps what they say true:
// it is the apply and the observe step of the flow source -> render -> store ->
// deliver -> apply -> observe -> report. A Runner takes signed orders (Accept),
// stages their renders, tries them, applies them wave by wave, prunes, watches
// what it applied, repairs it, and says what it sees as tunnel.Reports.
//
// One file holds one verb: stage, plan, dryrun, apply, prune, heal, observe,
// watch, report. The inventory of a Release, kept in State, decides what is ours;
// labels on the cluster only make objects cheap to watch. Nothing is deleted that
// the inventory does not name, and nothing whose UID or owner has changed.
package engine
