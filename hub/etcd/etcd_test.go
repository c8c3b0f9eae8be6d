// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const deadline = 30 * time.Second

// start runs a server until the test ends, or until stop is called.
func start(t *testing.T, dir string) (s *Server, stop func()) {
	t.Helper()
	s, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	select {
	case <-s.Ready():
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	case <-time.After(deadline):
		t.Fatal("not ready in time")
	}
	return s, stop
}

func client(t *testing.T, s *Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: deadline, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return c
}

func TestWhatIsWrittenIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s, stop := start(t, dir)
	if _, err := client(t, s).Put(t.Context(), "/k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := s.Health(); err != nil {
		t.Errorf("health while running: %v", err)
	}
	stop()
	if err := s.Health(); !errors.Is(err, ErrStopped) {
		t.Errorf("health after the end: %v, want %v", err, ErrStopped)
	}

	began := time.Now()
	s, _ = start(t, dir)
	t.Logf("ready again after %s", time.Since(began))
	got, err := client(t, s).Get(t.Context(), "/k")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
		t.Errorf("read %v after the restart, want the value v", got.Kvs)
	}
}

func TestAnOrderlyEndLogsNoErrors(t *testing.T) {
	errs := 0
	log := funcr.New(func(_, args string) {
		if strings.Contains(args, `"error"`) {
			errs++
			t.Log(args)
		}
	}, funcr.Options{})
	s, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), log))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case <-time.After(deadline):
		t.Fatal("not ready in time")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if errs > 0 {
		t.Errorf("%d errors in the log", errs)
	}
}

func TestTwoServersCannotShareADirectory(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	second, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); !errors.Is(err, ErrLocked) {
		t.Errorf("the second server ended with %v, want %v", err, ErrLocked)
	}
}

func TestNobodyElseCanReachIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	// A directory that was there before, open to all.
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, dir)

	path, found := strings.CutPrefix(s.Endpoint(), "unix://")
	if !found {
		t.Fatalf("endpoint %q is no unix socket", s.Endpoint())
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory has mode %o, want 0700", info.Mode().Perm())
	}
	sockets := unixSockets(t)
	for _, name := range sockets {
		if strings.HasPrefix(name, "@") && strings.Contains(name, filepath.Base(filepath.Dir(dir))) {
			t.Errorf("an abstract socket is open to every process: %s", name)
		}
	}
}

// unixSockets lists the names of the machine's unix sockets.
func unixSockets(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("/proc/net/unix")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if f := strings.Fields(line); len(f) == 8 {
			names = append(names, f[7])
		}
	}
	return names
}

func TestALongPathGetsASocketElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	s, stop := start(t, dir)
	if _, err := client(t, s).Put(t.Context(), "/k", "v"); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(s.Endpoint(), "unix://")
	stop()
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket's directory is left behind: %v", err)
	}
}

func TestAFileIsFragmentedWhenHalfOfItIsUnused(t *testing.T) {
	for name, c := range map[string]struct {
		size, used int64
		want       bool
	}{
		"small files are left alone":         {size: 32 << 20, used: 1 << 20},
		"a file in use is left alone":        {size: 256 << 20, used: 200 << 20},
		"a large, mostly unused file is not": {size: 256 << 20, used: 64 << 20, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fragmented(c.size, c.used); got != c.want {
				t.Errorf("fragmented(%d, %d) = %t, want %t", c.size, c.used, got, c.want)
			}
		})
	}
}
