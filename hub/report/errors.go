// SPDX-License-Identifier: Apache-2.0

package report

import "errors"

// ErrGone: the object was deleted, or another one has its name now. There is
// nothing left to write about.
var ErrGone = errors.New("the object is gone")
