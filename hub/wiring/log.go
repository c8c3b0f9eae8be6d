// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Logger writes one line an event, as JSON or as text, up to a verbosity.
func Logger(to io.Writer, asJSON bool, verbosity int) logr.Logger {
	options := funcr.Options{LogTimestamp: true, TimestampFormat: time.RFC3339Nano, Verbosity: verbosity}
	if asJSON {
		// There is nobody to tell that the log cannot be written.
		return funcr.NewJSON(func(line string) { fmt.Fprintln(to, line) }, options)
	}
	return funcr.New(func(name, line string) {
		if name != "" {
			line = name + ": " + line
		}
		fmt.Fprintln(to, line)
	}, options)
}
