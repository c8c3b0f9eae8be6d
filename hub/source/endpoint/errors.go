// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"time"
)

// rateLimited is what a server says when it was asked too often.
type rateLimited struct {
	host string
	wait time.Duration
	code int
}

func (r rateLimited) Error() string {
	if r.wait == 0 {
		return fmt.Sprintf("%s asks to come back later (%d)", r.host, r.code)
	}
	return fmt.Sprintf("%s asks to be left alone for %s (%d)", r.host, r.wait, r.code)
}
