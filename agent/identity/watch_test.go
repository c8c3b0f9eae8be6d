// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server sends the lines of one watch after the other.
type server struct {
	mu      sync.Mutex
	asked   []*http.Request
	watches [][]string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	var lines []string
	if len(s.watches) > 0 {
		lines, s.watches = s.watches[0], s.watches[1:]
	}
	s.mu.Unlock()
	if lines == nil {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return
		}
	}
}

func line(kind, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"PartialObjectMetadata","metadata":{"name":"convoy-join","resourceVersion":%q}}}`, kind, version)
}

func TestAChangeOfTheJoinTokenIsToldOnce(t *testing.T) {
	s := &server{watches: [][]string{
		{line("ADDED", "1")},
		{line("ADDED", "1"), `{"type":"ERROR","object":{"kind":"Status","message":"too old resource version"}}`},
		{line("ADDED", "1"), line("DELETED", "2"), "no JSON"},
		{line("ADDED", "3")},
	}}
	api := httptest.NewServer(s)
	defer api.Close()
	w, err := NewWatcher(&rest.Config{Host: api.URL}, "convoy-agent")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for i := range 2 { // the first, and the one after the Secret was made anew
		select {
		case <-w.Changed():
		case <-time.After(time.Minute):
			t.Fatalf("told of %d changes", i)
		}
	}
	select {
	case <-w.Changed():
		t.Error("told of what did not change")
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.asked {
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/namespaces/convoy-agent/secrets" || q.Get("fieldSelector") != "metadata.name=convoy-join" || q.Get("watch") != "1" {
			t.Errorf("asked for %s", r.URL)
		}
	}
}
