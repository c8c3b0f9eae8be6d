// SPDX-License-Identifier: Apache-2.0

package offline

import "errors"

var (
	// ErrSource: the folder is not the source that the Release needs.
	ErrSource = errors.New("the source folder")
	// ErrValues: a ConfigMap or Secret that the Release names was not given.
	ErrValues = errors.New("not among the ConfigMaps and Secrets that were given")
	// ErrRemote: what only the hub can ask for.
	ErrRemote = errors.New("cannot be had offline")
	// ErrKey: a template asks for a key that the cluster was not given.
	ErrKey = errors.New("the cluster has no such key")
	// ErrTooLarge: more files than a render takes.
	ErrTooLarge = errors.New("too large")

	// ErrCPU: the render used more processor time than one may have.
	ErrCPU = errors.New("the render takes too much processor time")
	// ErrDeadline: it took longer than one may take.
	ErrDeadline = errors.New("the render takes too long")
	// ErrMemory: it needs more memory than one may have.
	ErrMemory = errors.New("the render needs too much memory")
	// ErrDeep: a template or value that calls or holds itself.
	ErrDeep = errors.New("the render recurses too deep")
	// ErrOutput: it prints more than a render can be.
	ErrOutput = errors.New("the render is too large")
	// ErrDied: it ended before its end, and why is not one of these.
	ErrDied = errors.New("the render broke off")
)

var (
	errCircle  = errors.New("it goes in circles")
	errLeaves  = errors.New("it leaves the source")
	errNowhere = errors.New("it leads nowhere")
	errSpecial = errors.New("is no regular file")
	errRounds  = errors.New("the render asks for more and more of the source")
)
