// SPDX-License-Identifier: Apache-2.0

// Package options turns the command line of the hub into a configuration, in
// four steps that cannot be skipped: New and its flags, Complete, Validate,
// Config. It stands before the flow: hub/main.go starts with it.
package options
