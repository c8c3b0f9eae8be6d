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
)

var (
	errCircle  = errors.New("leads in a circle")
	errSpecial = errors.New("is no regular file")
	errRounds  = errors.New("the render asks for more and more of the source")
)
