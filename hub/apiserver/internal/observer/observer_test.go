// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func TestAnswersOfAnObserverBecomeThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	status := func(code int, reason metav1.StatusReason) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":` + strconv.Itoa(code) + `,"reason":"` + string(reason) + `","message":"as it said"}`
	}
	tests := map[string]struct {
		code int
		body string
		is   func(error) bool // nil: no error
		says string
	}{
		"a preview":                     {http.StatusOK, `{"kind":"Preview","renderRef":"sha256:1"}`, nil, ""},
		"a preview that is cut off":     {http.StatusOK, `{"kind":"Preview","rend`, apierrors.IsInternalError, "cannot be read"},
		"a preview without an end":      {http.StatusOK, `{"renderRef":"` + strings.Repeat("x", maxAnswer) + `"}`, apierrors.IsInternalError, "more than 24 MiB"},
		"content that does not render":  {http.StatusUnprocessableEntity, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), apierrors.IsInvalid, "as it said"},
		"no such Release":               {http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound), apierrors.IsNotFound, "as it said"},
		"too many at once":              {http.StatusTooManyRequests, status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), apierrors.IsTooManyRequests, "as it said"},
		"a refusal of this API server":  {http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden), apierrors.IsInternalError, "same keys"},
		"a code that the Status is not": {http.StatusBadGateway, status(http.StatusOK, ""), apierrors.IsInternalError, "HTTP 502"},
		"somebody else's page":          {http.StatusNotFound, "<html>not here</html>", apierrors.IsInternalError, "HTTP 404"},
		"a way to somebody else":        {http.StatusFound, "", apierrors.IsInternalError, "HTTP 302"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var signed bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				signed = r.Header.Get("Proof") == "made" && r.URL.RequestURI() == "/preview/team/shop?revision=a%2Fb"
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(test.code)
				if _, err := w.Write([]byte(test.body)); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(server.Close)
			client := New(server.URL, func(r *http.Request, _ []byte) { r.Header.Set("Proof", "made") })
			t.Cleanup(client.Close)
			got, err := client.Preview(t.Context(), "team", "shop", "a/b", nil)
			switch {
			case !signed:
				t.Error("the request was not signed as it was sent")
			case test.is == nil && (err != nil || got.RenderRef != "sha256:1"):
				t.Errorf("got %+v, %v", got, err)
			case test.is != nil && (err == nil || !test.is(err) || !strings.Contains(err.Error(), test.says)):
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

func TestAnObserverThatIsAwayIsNamed(t *testing.T) {
	t.Parallel()
	client := New("http://127.0.0.1:1", func(*http.Request, []byte) {})
	t.Cleanup(client.Close)
	if _, err := client.Preview(t.Context(), "team", "shop", "", &v1alpha1.Release{}); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "--observer-url http://127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
	if _, err := New("", nil).Preview(t.Context(), "team", "shop", "", nil); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "--observer-url") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatTakesTooLongIsSaidToDoSo(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"before it begins": false, "in its middle": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begun {
					w.WriteHeader(http.StatusOK)
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
				}
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			client := New(server.URL, func(*http.Request, []byte) {})
			t.Cleanup(client.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := client.Preview(ctx, "team", "shop", "", nil); !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "took too long") {
				t.Errorf("got %v", err)
			}
		})
	}
}
