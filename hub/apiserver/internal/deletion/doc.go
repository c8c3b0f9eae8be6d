// SPDX-License-Identifier: Apache-2.0

// Package deletion holds back deletions that would uninstall more than somebody
// is likely to have meant. It stands before the flow source -> render -> store ->
// deliver -> apply -> observe -> report: all deletions of Releases by users of the
// API, by people and by the host's controllers, come through here before they are
// stored, and those of Clusters that take their Releases with them.
//
// A Gate counts in memory. A restart of the hub begins to count anew and forgets
// what was confirmed; it never lets go of what was held.
package deletion
