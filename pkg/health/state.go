// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// State of one object.
type State uint8

// States. What is Suspended was stopped by somebody on purpose and is neither healthy nor
// failed. Unknown is what cannot be told.
const (
	Unknown State = iota
	Healthy
	Progressing
	Degraded
	Suspended
	Terminating
)

var words = [...]string{
	Unknown: "Unknown", Healthy: "Healthy", Progressing: "Progressing", Degraded: "Degraded",
	Suspended: "Suspended", Terminating: "Terminating",
}

// String gives the word used in inventories and reports.
func (s State) String() string {
	if int(s) >= len(words) {
		return words[Unknown]
	}
	return words[s]
}

// Outcome counts a state as one of Healthy, Progressing, Degraded, Suspended and Unknown:
// what is being deleted is on its way somewhere.
func (s State) Outcome() State {
	if s == Terminating {
		return Progressing
	}
	return s
}

// ParseState reads a word that String gave; false for any other.
func ParseState(word string) (State, bool) {
	for state, known := range words {
		if word == known {
			return State(state), true
		}
	}
	return Unknown, false
}

// Verdict is a state, and why when it is not Healthy.
type Verdict struct {
	State   State
	Message string
	// Final: the object itself says that it has failed for good, or has been found to be
	// so for long. A Degraded that is not may be a moment's.
	Final bool
	// Grace is until when a Degraded may get better by itself, as the object dates what it
	// says; zero: it does not.
	Grace time.Time
}
