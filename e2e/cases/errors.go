// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
)

// ErrCase is a case file that cannot be played, with the place.
var ErrCase = errors.New("broken case file")

// broken names the place of what is wrong.
func (c *Case) broken(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w: %w", c.File, line, ErrCase, fmt.Errorf(format, args...))
}
