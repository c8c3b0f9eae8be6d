// SPDX-License-Identifier: Apache-2.0

package observer

import "time"

const (
	// MaxBody of a request: the API server takes no larger object either.
	MaxBody = 3 << 20
	// MaxAnswer of objects in one preview. A render may have more: it is made offline
	// with kubectl convoy render, or read from the store.
	MaxAnswer = 8 << 20

	// maxPreviews are made at once; renders that are to be delivered come first.
	maxPreviews = 2
	// maxWaiting more wait for that.
	maxWaiting = 32
	// previewTime from the request to the answer. The host's API server gives up after
	// a minute.
	previewTime = 50 * time.Second

	// Of the listener.
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = previewTime + 20*time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 5 * time.Second
	maxHeader     = 16 << 10
)
