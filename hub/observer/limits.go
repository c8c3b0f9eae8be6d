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
	// maxPreviewsPerNamespace of them are of one namespace, so that a chart without an
	// end leaves a place for the others.
	maxPreviewsPerNamespace = 1
	// maxWaiting more wait for that, maxAskedPerNamespace of one namespace with those
	// that are made.
	maxWaiting           = 32
	maxAskedPerNamespace = 8
	// previewTime from the request to the answer. An API server ends a create after 34 s.
	previewTime = 30 * time.Second
	// fairTime of a preview while another one waits for its place.
	fairTime = 8 * time.Second

	// maxQuestions about a Release's health, diff or history are answered at once, and
	// maxQuestionsPerNamespace of one namespace. maxQuestionsWaiting wait beside them, and
	// of one namespace maxQuestionsAsked are asked with those that are answered.
	maxQuestions             = 8
	maxQuestionsPerNamespace = 4
	maxQuestionsWaiting      = 64
	maxQuestionsAsked        = 16
	// liveTime that an agent has to answer.
	liveTime = 10 * time.Second
	// maxLiveObjects of one answer of an agent: a render has no more.
	maxLiveObjects = 10_000
	// maxCompared of an applied render, which is held while it is compared.
	maxCompared = 16 << 20

	// Of the listener.
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = previewTime + 20*time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 5 * time.Second
	maxHeader     = 16 << 10
)
