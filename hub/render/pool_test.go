// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source/gittest"
	"kumodo.io/convoy/hub/source/snapshot"
)

func TestAWorkerThatDiesCostsOneRenderAndTheNextOneWorks(t *testing.T) {
	w := newWorld(t)
	good := tree{"app/a.yaml": gittest.ConfigMap("a", 100)}
	if _, err := w.render(t, good); err != nil {
		t.Fatal(err)
	}
	// A source that stands still holds the worker until it is killed.
	hold := newHeld()
	failed := make(chan error, 1)
	go func() {
		_, err := w.render(t, hold)
		failed <- err
	}()
	<-hold.begun
	kill(t, w.Busy())
	close(hold.release)
	wantFailure(t, <-failed, "RenderFailed", "the worker process died (signal: killed)")
	if result, err := w.render(t, good); err != nil || result.Count != 1 {
		t.Errorf("the next render: %+v, %v", result, err)
	}
	// One that dies while it is idle costs nothing.
	w.KillIdle()
	if result, err := w.render(t, good); err != nil || result.Count != 1 {
		t.Errorf("after an idle worker died: %+v, %v", result, err)
	}
}

func kill(t *testing.T, pids string) {
	t.Helper()
	var pid int
	if _, err := fmt.Sscanf(pids, "[%d]", &pid); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// held is a source whose stream stands still until it is let go.
type held struct {
	begun, release chan struct{}
	once           *sync.Once
}

func newHeld() held {
	return held{begun: make(chan struct{}), release: make(chan struct{}), once: &sync.Once{}}
}

func (h held) Part([]string) (io.ReadCloser, error) { return io.NopCloser(h), nil }
func (h held) Kind(string) (snapshot.Kind, error)   { return snapshot.Folder, nil }

// InputDigest is another one for each, so that none waits for another's render.
func (h held) InputDigest(string) (string, error) { return fmt.Sprintf("%p", h.once), nil }

func (h held) Read([]byte) (int, error) {
	h.once.Do(func() { close(h.begun) })
	<-h.release
	return 0, io.EOF
}

func TestAWorkerServesOneTenantOnly(t *testing.T) {
	w := newWorld(t)
	if pids := workersOf(t, w, "a", "a", "a"); pids[0] != pids[1] || pids[1] != pids[2] {
		t.Errorf("one tenant had several workers one after the other: %v", pids)
	}
	if pids := workersOf(t, w, "a", "b", "c", "a"); pids[0] == pids[1] || pids[1] == pids[2] || pids[0] == pids[2] {
		t.Errorf("tenants shared a worker: %v", pids)
	}
}

// workersOf renders for each tenant in turn and tells which worker did it: the one
// that is busy while its source is held.
func workersOf(t *testing.T, w *world, tenants ...string) []string {
	t.Helper()
	var pids []string
	for _, tenant := range tenants {
		hold := newHeld()
		done := make(chan error, 1)
		go func() {
			_, err := w.Render(t.Context(), job(tenant, hold))
			done <- err
		}()
		<-hold.begun
		pids = append(pids, w.Busy())
		close(hold.release)
		wantFailure(t, <-done, "PathNotFound", "no such path")
	}
	return pids
}

func TestOneTenantLeavesSlotsToOthers(t *testing.T) {
	w := newWorld(t)
	var holds []held
	var group sync.WaitGroup
	defer group.Wait()
	for range 5 {
		hold := newHeld()
		holds = append(holds, hold)
		group.Go(func() {
			_, err := w.Render(t.Context(), job("slow", hold))
			if err == nil {
				t.Error("no error")
			}
		})
	}
	defer func() {
		for _, hold := range holds {
			close(hold.release)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := w.Render(ctx, job("other", tree{"app/a.yaml": gittest.ConfigMap("a", 100)})); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

func TestAProgramThatIsNoWorkerIsAFailedRender(t *testing.T) {
	w := newWorld(t, func(o *render.Options) { o.Worker.Path, o.Worker.Args = "/proc/self/exe", []string{dyingWorker} })
	_, err := w.render(t, tree{"app/a.yaml": gittest.ConfigMap("a", 100)})
	wantFailure(t, err, "RenderFailed", "the worker process died (exit status 7)")
}
