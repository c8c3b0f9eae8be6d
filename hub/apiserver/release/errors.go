// SPDX-License-Identifier: Apache-2.0

package release

import "errors"

// errDeleting refuses a sync of a Release that is on its way out.
var errDeleting = errors.New("the Release is being deleted")
