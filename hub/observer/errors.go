// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrOptions: the observer was not given what it needs.
	ErrOptions = errors.New("observer options")
	// ErrNotFound: there is no such Release.
	ErrNotFound = errors.New("no such Release")
	// ErrBody: the body is no Release, or not the one of the path.
	ErrBody = errors.New("the body")
	// ErrTooLarge: a request or an answer is more than the limit.
	ErrTooLarge = errors.New("too large")
	// ErrBusy: too many wait already.
	ErrBusy = errors.New("too many answers are asked for at once")
	// ErrTurn: it was made as long as others can be kept waiting.
	ErrTurn = errors.New("it takes too long while others wait; kubectl convoy render makes it on your machine")
	// ErrAway: nobody in the Cluster can be asked now.
	ErrAway = errors.New("the Cluster is not connected")
	// ErrNoRender: the store has no such render.
	ErrNoRender = errors.New("no such render")
	// errNoCluster: the Release's Cluster does not exist.
	errNoCluster = errors.New("no such Cluster")
)

// Reasoned is an error of another room that knows its word for a condition: the
// content, or the way to it, is at fault, and not the hub.
type Reasoned interface {
	error
	Reason() string
}

// retryAfter is what a caller who came when all were busy is told, in seconds.
const retryAfter = 2

// failure is what one error is answered with.
type failure struct {
	code   int32
	reason metav1.StatusReason
	text   string
	retry  int32
}

// judge says how an error is answered; ok is false for one that is the hub's fault,
// whose text is for the log.
func judge(err error) (f failure, ok bool) {
	var named Reasoned
	switch {
	case errors.Is(err, ErrNotFound):
		return failure{http.StatusNotFound, metav1.StatusReasonNotFound, err.Error(), 0}, true
	case errors.Is(err, ErrBody):
		return failure{http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), 0}, true
	case errors.Is(err, ErrTooLarge):
		return failure{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, err.Error(), 0}, true
	case errors.Is(err, ErrBusy), errors.Is(err, ErrTurn):
		return failure{http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error(), retryAfter}, true
	case errors.Is(err, context.DeadlineExceeded):
		return failure{http.StatusGatewayTimeout, metav1.StatusReasonTimeout, fmt.Sprintf("the answer was not ready within %s", previewTime), 0}, true
	case errors.As(err, &named) && named.Reason() != "":
		return failure{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, named.Reason() + ": " + err.Error(), 0}, true
	}
	return failure{http.StatusInternalServerError, metav1.StatusReasonInternalError, "the observer failed; the log of the hub says more", 0}, false
}
