// SPDX-License-Identifier: Apache-2.0

package controller

// Reasoned is an error of a room that knows its word for a condition.
type Reasoned interface {
	error
	Reason() string
}
