// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/source"
)

// Error is what Render returns. Its text is fit for a status: it names file,
// document and line, and repeats no value.
type Error struct {
	reason string
	err    error
	// ofInputs: a worker that lived on said so.
	ofInputs bool
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.err }

// Reason for the Release's Rendered condition: RenderFailed, EmptyRender,
// PathNotFound, StoreFailed or FetchFailed.
func (e *Error) Reason() string { return e.reason }

// ErrStopped: the renderer is not running any more.
var ErrStopped = errors.New("the hub is stopping")

// errNeeds: a worker asks again for what it was given.
var errNeeds = errors.New("the render needs more of the source than it can be given")

// errStream: a worker answered more than a render can be.
var errStream = errors.New("the render is too large")

func failed(reason string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	return &Error{reason: reason, err: err}
}

// sourceFailed names the reason of an error of the snapshot; nil stays nil.
func sourceFailed(err error) error {
	if err == nil {
		return nil
	}
	return failed(source.ReleaseReason(err), err)
}

func storeFailed(err error) error { return failed(v1alpha1.ReasonStoreFailed, err) }
