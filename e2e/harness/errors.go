// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned when the supervisor has ended or been closed.
	ErrClosed = errors.New("supervisor is closed")
	// ErrNotRunning is returned for a component or program that is not running.
	ErrNotRunning = errors.New("not running")
	// ErrNotPermitted is returned for a deviation from a manifest that is not
	// in the list of permitted ones.
	ErrNotPermitted = errors.New("deviation from the manifest is not permitted")
	// ErrUnsupported is returned by RunPod for a field of a pod that it does
	// not act on; it is never skipped in silence.
	ErrUnsupported = errors.New("not supported by podrun")
	// ErrNoRepository is returned outside of the repository.
	ErrNoRepository = errors.New("no repository of module kumodo.io/convoy above the working directory")
)

// ExitError says that a program ended, with the end of its log.
type ExitError struct {
	Name string
	Exit Exit
	// Log is the path of the log, Tail its last lines.
	Log, Tail string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended (%s); log %s ends with:\n%s", e.Name, e.Exit, e.Log, e.Tail)
}

// CommandError says that a command failed, with what it said.
type CommandError struct {
	Args   []string
	Stderr string
	Err    error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%q: %v: %s", e.Args, e.Err, e.Stderr)
}

func (e *CommandError) Unwrap() error { return e.Err }
