// SPDX-License-Identifier: Apache-2.0

package content

import "errors"

// Sentinels. Errors that wrap them name the file, the object or the reference.
var (
	// ErrEmpty: there are no objects. What runs is kept.
	ErrEmpty = errors.New("empty render: there are no objects under the path")
	// ErrPath: the path is not in the source.
	ErrPath = errors.New("no such path in the source")
	// ErrKind: the path has other content than was said.
	ErrKind = errors.New("has other content")
	// ErrIncomplete: more is needed to make the render; Result.Needs says what. It is no
	// fault of the content.
	ErrIncomplete = errors.New("more is needed to make the render")
	// ErrValues: values that cannot be read.
	ErrValues = errors.New("values cannot be read")
	// ErrSecretNumber: a value of a Secret stands where it cannot be kept out of the
	// stored render.
	ErrSecretNumber = errors.New("a number that came in through a Secret shows here, and only texts can be sealed: quote it, or take it from a ConfigMap")
	// ErrSecretKey: a key shows a text of a Secret.
	ErrSecretKey = errors.New("a key in it contains a text that came in through a Secret, and only values can be sealed: take keys from elsewhere")
	// ErrSecretTexts: too many texts to look for.
	ErrSecretTexts = errors.New("too many texts in Secrets to be looked for in the render")
	// ErrHook: a hook that says what cannot be.
	ErrHook = errors.New("a hook cannot be understood")
)
