// SPDX-License-Identifier: Apache-2.0

package engine

// Reasons of exceptions, as the API names them.
const (
	exceptionRejected    = "Rejected"
	exceptionConflict    = "Conflict"
	exceptionOwned       = "OwnedByOther"
	exceptionImmutable   = "Immutable"
	exceptionUnreachable = "Unreachable"
	exceptionProgressing = "Progressing"
	exceptionSuspended   = "Suspended"
	exceptionDegraded    = "Degraded"
	exceptionDrifted     = "Drifted"
	exceptionContested   = "Contested"
	exceptionOrphaned    = "Orphaned"
	exceptionTerminating = "Terminating"
	exceptionUnknown     = "Unknown"
)

// severity orders exceptions: what comes first is what a person must see.
func severity(reason string) int {
	switch reason {
	case exceptionRejected, exceptionOwned:
		return 0
	case exceptionConflict, exceptionImmutable, exceptionTerminating:
		return 1
	case exceptionDegraded:
		return 2
	case exceptionContested:
		return 3
	case exceptionUnreachable, exceptionUnknown:
		return 4
	case exceptionDrifted:
		return 5
	case exceptionProgressing, exceptionSuspended:
		return 6
	}
	return 7
}
