// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestAnAPIServerThatDoesNotAnswerIsNamedWithoutAddressOrPath(t *testing.T) {
	t.Parallel()
	dropping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(dropping.Close)
	foreign := httptest.NewUnstartedServer(http.NotFoundHandler())
	foreign.Config.ErrorLog = log.New(io.Discard, "", 0)
	foreign.StartTLS()
	t.Cleanup(foreign.Close)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ host, says string }{
		"nobody listens": {closed, "connection refused"},
		"it hangs up":    {dropping.URL, "EOF"},
		"another's":      {foreign.URL, "its certificate is signed by an unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, err := New(Options{
				Config: &rest.Config{Host: c.host}, HubID: "hub", ClusterUID: "cluster", State: idle{}, Blobs: idle{}, Report: func(tunnel.Report) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = rn.target.get(t.Context(), resource{version: "v1", plural: "configmaps", namespaced: true}, "secret-place", "secret-name")
			if !errors.Is(err, ErrNoAnswer) {
				t.Fatalf("%v is not ErrNoAnswer", err)
			}
			err = fmt.Errorf("stage layer sha256:01: %w", errors.Join(err, io.ErrUnexpectedEOF))
			if got, want := explain(err, false), "the cluster's API server does not answer: "+c.says; got != want {
				t.Errorf("told is %q, want %q", got, want)
			}
			if classify(err, surroundings{}) != cannotTell || reasonOf(err) != exceptionUnreachable {
				t.Errorf("it is taken for an answer: %v", err)
			}
		})
	}
}

func TestACallThatIsTooSlowIsATimeoutAndOneCalledOffIsItself(t *testing.T) {
	t.Parallel()
	unknown := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example.test"}}
	if got := NoAnswer(unknown); !strings.HasSuffix(got.Error(), "does not answer: its name is not known") {
		t.Error(got)
	}
	if got := NoAnswer(fmt.Errorf("wait: %w", context.DeadlineExceeded)); !strings.HasSuffix(got.Error(), "does not answer: timeout") {
		t.Error(got)
	}
	if got := NoAnswer(context.Canceled); errors.Is(got, ErrNoAnswer) || !errors.Is(got, context.Canceled) {
		t.Error(got)
	}
}
