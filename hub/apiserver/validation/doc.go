// SPDX-License-Identifier: Apache-2.0

// Package validation says whether what a user wrote is acceptable, with the path
// of each field that is not. It is pure: no clock, no network, no storage. The
// API server's strategies call it for every write, also for those made in
// process, before the flow begins.
package validation
