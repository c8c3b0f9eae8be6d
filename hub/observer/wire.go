// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errUnproven: a request that is not the API server's.
var errUnproven = errors.New("not from the API server")

// request as read.
type request struct {
	key   types.NamespacedName
	query url.Values
	body  []byte
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) (*request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: a Release of more than %d MiB", ErrTooLarge, MaxBody>>20)
	case err != nil:
		return nil, fmt.Errorf("%w cannot be read: %w", ErrBody, err)
	}
	if err := s.Check(r, body); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnproven, err)
	}
	return &request{key: types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, query: r.URL.Query(), body: body}, nil
}

// status is the failure in the API's own form, which the API server hands on.
func (f failure) status() *metav1.Status {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: f.code, Reason: f.reason, Message: f.text,
	}
	if f.retry > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: f.retry}
	}
	return status
}

func write(log logr.Logger, w http.ResponseWriter, body any, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.V(1).Info("An answer was not taken", "cause", err.Error())
	}
}
