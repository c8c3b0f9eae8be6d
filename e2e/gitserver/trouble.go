// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Answer may answer a request in the place of Git, and says whether it did.
type Answer func(http.ResponseWriter, *http.Request) bool

// Before sets who is asked first, for all repositories; nil: nobody.
func (s *Server) Before(answer Answer) {
	if answer == nil {
		s.before.Store(nil)
		return
	}
	s.before.Store(&answer)
}

// LetIn answers all who do not give that password.
func LetIn(password string) Answer {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if _, given, ok := r.BasicAuth(); ok && given == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// Later answers all that they shall come back after a time.
func Later(wait time.Duration) Answer {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
}

// Never takes a request and does not answer it as long as the other side waits.
func Never(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// Git runs git in the work tree, as its tester.
func (r *Repository) Git(ctx context.Context, args ...string) error {
	return git(ctx, append([]string{"-C", r.work, "-c", "user.name=tester", "-c", "user.email=tester@example.test"}, args...)...)
}

// Head is the commit that the work tree is at.
func (r *Repository) Head(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "-C", r.work, "rev-parse", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
