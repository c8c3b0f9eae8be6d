// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/gittest"
)

// One tenant names many hosts that take connections and never answer; another one's
// source is asked at once all the same.
func TestGO04ATenantWithManySilentHostsHoldsUpNobodyElse(t *testing.T) {
	const silentHosts, sources = 8, 48
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"a": "b"})
	good := gittest.NewHTTP(t, root)
	asked := make(chan struct{}, sources)
	release := make(chan struct{})
	var silent []*gittest.HTTP
	for range silentHosts {
		server := gittest.NewHTTP(t, root)
		server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			asked <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return false
		})
		silent = append(silent, server)
	}
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer close(release)
	defer cancel()
	for i := range sources {
		object := gitRepository(silent[i%silentHosts].RepoURL(repo))
		object.Namespace, object.Name = "bad", fmt.Sprint("silent-", i)
		group.Go(func() {
			// It gives up with the test, or its remote's time is over before.
			if _, err := w.Resolve(ctx, source.Want{Object: object}, time.Minute); err == nil {
				t.Error("a host that never answers was no failure")
			}
		})
	}
	for range source.MaxLooksPerTenant {
		<-asked
	}
	object := gitRepository(good.RepoURL(repo))
	object.Namespace = "team"
	if _, err := w.Resolve(t.Context(), source.Want{Object: object}, time.Minute); err != nil {
		t.Error(err)
	}
	if n := len(asked); n > 0 {
		t.Errorf("%d more hosts of the one tenant were asked at the same time", n)
	}
}

func TestWhoWasSilentIsNotWaitedForAsLongAgain(t *testing.T) {
	t.Parallel()
	var short int
	for n := range 8 {
		if source.Patience(n) < source.Patience(0) {
			short++
		}
	}
	if short != 6 {
		t.Errorf("%d of 8 times it is short, want 6", short)
	}
}
