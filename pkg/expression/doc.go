// SPDX-License-Identifier: Apache-2.0

// Package expression compiles and evaluates what users write in CEL, for hub and agent
// alike: health rules and drift rules, which the hub checks when they are written and
// the agent evaluates in the observe step. A program has a limit on its size and on
// what one evaluation costs, and tells which facts of cluster and self it reads, so
// that an order carries just those and changes only when one of them does.
package expression
