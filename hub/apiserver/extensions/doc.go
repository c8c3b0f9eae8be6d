// SPDX-License-Identifier: Apache-2.0

// Package extensions stores and serves rules of health: HealthRuleSets of a namespace
// and GlobalHealthRuleSets, each with the subresource status. It stands before the
// flow: the rules say how the observe step judges objects.
package extensions
