// SPDX-License-Identifier: Apache-2.0

package strategy

import "errors"

// ErrKind is returned when an object of another kind comes in.
var ErrKind = errors.New("an object of another kind")
