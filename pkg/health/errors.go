// SPDX-License-Identifier: Apache-2.0

package health

import "errors"

// ErrDocument: a document of rules that cannot be read, or is too large.
var ErrDocument = errors.New("the health rules cannot be read")
