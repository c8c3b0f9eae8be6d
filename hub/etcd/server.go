// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// Options of an embedded etcd.
type Options struct {
	// Dir holds the data and, where its path is short enough, the socket. It is
	// made, with mode 0700, if it is missing.
	Dir string
	// Clock times the checks; the real one when nil.
	Clock clock.WithTicker
	// Registerer for the metrics; none when nil.
	Registerer prometheus.Registerer
}

// Server is an embedded etcd. New starts nothing.
type Server struct {
	// Static after New.
	dir     string
	clock   clock.WithTicker
	metrics *metrics
	ready   chan struct{}

	mu       sync.Mutex
	endpoint string      // guarded by mu
	member   *embed.Etcd // guarded by mu; nil unless running
	alarm    bool        // guarded by mu: NOSPACE as last seen
	revision int64       // owned by the check loop: seen at the last check
}

// New makes one.
func New(o Options) (*Server, error) {
	s := &Server{dir: o.Dir, clock: o.Clock, ready: make(chan struct{}), metrics: newMetrics()}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	if o.Registerer != nil {
		if err := s.metrics.register(o.Registerer); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Ready is closed when requests are answered.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Endpoint is where clients connect, as in unix:///path; empty before Ready.
func (s *Server) Endpoint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endpoint
}

// Health says whether writes are accepted: nil, ErrStopped or ErrNoSpace.
func (s *Server) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.member == nil:
		return ErrStopped
	case s.alarm:
		return ErrNoSpace
	default:
		return nil
	}
}

// Run serves until ctx ends, and returns when all is written and closed. It can
// be called once.
func (s *Server) Run(ctx context.Context) (err error) {
	log := logr.FromContextOrDiscard(ctx).WithName("etcd")
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make etcd directory: %w", err)
	}
	// MkdirAll leaves the mode of a directory that is there already.
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return fmt.Errorf("close etcd directory to others: %w", err)
	}
	held, err := lock(s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()

	socket, remove, err := socketPath(s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()

	var closing atomic.Bool
	member, err := embed.StartEtcd(config(s.dir, socket, zapLogger(log, &closing)))
	if err != nil {
		return fmt.Errorf("start embedded etcd: %w", err)
	}
	defer func() {
		closing.Store(true)
		member.Close()
	}()
	select {
	case <-member.Server.ReadyNotify():
	case err := <-member.Err():
		return fmt.Errorf("%w: %w", ErrStart, err)
	case <-s.clock.After(startTimeout):
		return ErrStart
	case <-ctx.Done():
		return nil
	}

	s.mu.Lock()
	s.member, s.endpoint = member, "unix://"+socket
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.member = nil
		s.mu.Unlock()
	}()
	close(s.ready)
	log.Info("embedded etcd is ready", "directory", s.dir)

	ticker := s.clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		s.check(ctx, log, member)
		select {
		case <-ctx.Done():
			return nil
		case err := <-member.Err():
			return fmt.Errorf("serve embedded etcd: %w", err)
		case <-ticker.C():
		}
	}
}

// socketPath is in the data directory, or, where its path is too long for the
// kernel, in a directory of its own with the same mode.
func socketPath(dir string) (path string, remove func() error, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("find etcd directory: %w", err)
	}
	path = filepath.Join(abs, "client.sock")
	if len(path) <= maxSocketPath {
		return path, func() error { return nil }, nil
	}
	short, err := os.MkdirTemp("", "convoy-etcd-")
	if err != nil {
		return "", nil, fmt.Errorf("make socket directory: %w", err)
	}
	return filepath.Join(short, "client.sock"), func() error { return os.RemoveAll(short) }, nil
}

func config(dir, socket string, log *zap.Logger) *embed.Config {
	client := url.URL{Scheme: "unix", Path: socket}
	c := embed.NewConfig()
	c.Dir = filepath.Join(dir, "member")
	c.ListenClientUrls = []url.URL{client}
	c.AdvertiseClientUrls = []url.URL{client}
	// No listener for peers at all: a unix peer URL with a path would bind an
	// abstract socket, which any process of the machine may open.
	c.ListenPeerUrls = nil
	c.EnableGRPCGateway = false
	c.QuotaBackendBytes = quotaBytes
	c.MaxRequestBytes = maxRequestBytes
	c.SnapshotCount = snapshotCount
	c.SnapshotCatchUpEntries = catchUpEntries
	// The API server compacts, every five minutes.
	c.AutoCompactionRetention = "0"
	// A single member elects itself: there is nobody to give time to.
	c.TickMs, c.ElectionMs = tickMilliseconds, electionMilliseconds
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return c
}
