// SPDX-License-Identifier: Apache-2.0

//go:build race

package offline

// raceBuild: the race detector maps terabytes of address space for itself.
const raceBuild = true
