// SPDX-License-Identifier: Apache-2.0

// Package version knows which version of convoy a program is, and when it was
// built. It stands beside the flow: hello, metrics and renders say the version,
// nothing decides by it. A clock that is behind the build time is wrong.
package version

import (
	"runtime/debug"
	"time"
)

// Version and BuildTime (RFC 3339) are set when a program is linked. Version is as
// in v0.1.0 or v0.1.0-3-gabc1234.
var (
	Version   = "v0.0.0-dev"
	BuildTime = ""
)

// Built is when the program was built, or its source was committed; the zero time
// when neither is known.
func Built() time.Time {
	if t, err := time.Parse(time.RFC3339, BuildTime); err == nil {
		return t
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key != "vcs.time" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
			return t
		}
	}
	return time.Time{}
}
