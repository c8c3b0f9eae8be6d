// SPDX-License-Identifier: Apache-2.0

package healthrule

import "errors"

// ErrStore: the document of rules could not be put into the render store.
var ErrStore = errors.New("store health rules")
