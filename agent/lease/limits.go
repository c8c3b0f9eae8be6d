// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

const (
	// Duration of the Lease: whoever waits takes it when it was not renewed for so
	// long, as seen by its own clock that does not jump.
	Duration = 60 * time.Second
	// RenewEvery is how often the holder renews, and how often others look.
	RenewEvery = 20 * time.Second
	// Margin before the end of Duration, by which the holder has stopped.
	Margin = 10 * time.Second
	// retryEvery after a call that failed.
	retryEvery = 5 * time.Second
	// callTimeout of one call.
	callTimeout = 10 * time.Second
	// maxDuration that a Lease may name; a longer one is cut to it.
	maxDuration = 5 * time.Minute
)
