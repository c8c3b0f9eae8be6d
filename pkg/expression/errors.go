// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"strings"
)

// Sentinels that callers test with errors.Is.
var (
	// ErrSyntax: the text is no expression, or one of the wrong type.
	ErrSyntax = errors.New("the expression cannot be read")
	// ErrTooLarge: the text is longer than an expression may be.
	ErrTooLarge = errors.New("the expression is too large")
	// ErrWhole: the expression reads all of cluster or self, not one key of it.
	ErrWhole = errors.New("name a key")
	// ErrFailed: the evaluation failed, as on a field that is not there.
	ErrFailed = errors.New("the expression fails")
	// ErrCost: the evaluation was stopped, it costs too much.
	ErrCost = errors.New("the expression costs too much")
)

// shown makes one line of a text, and cuts it to what a message may repeat.
func shown(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "..."
}
