// SPDX-License-Identifier: Apache-2.0

// Package version knows which version of convoy a program is. It stands beside
// the flow: hello, metrics and renders say it, nothing decides by it.
package version

// Version is set when a program is linked, as in v0.1.0 or v0.1.0-3-gabc1234.
var Version = "v0.0.0-dev"
