// SPDX-License-Identifier: Apache-2.0

// Package gitserver serves real Git repositories over https on loopback, with
// git's own http-backend behind it, so that suites and the demo have a remote
// that Releases can take content from. It stands before the first step of the
// flow: what hub/source fetches from.
package gitserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Server serves every repository made with Repository. Close ends it.
type Server struct {
	dir      string
	port     int
	http     *http.Server
	ca       []byte
	requests atomic.Int64
	before   atomic.Pointer[Answer]
	done     chan error
}

// Start listens on addr ("127.0.0.1:0" for a free port) and keeps repositories
// under dir. Credentials are not asked for.
func Start(ctx context.Context, dir, addr string) (*Server, error) {
	certificate, ca, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("git server certificate: %w", err)
	}
	return start(ctx, dir, addr, certificate, ca)
}

func start(ctx context.Context, dir, addr string, certificate tls.Certificate, ca []byte) (*Server, error) {
	execPath, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("git --exec-path: %w", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(execPath)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		return nil, fmt.Errorf("git has no http-backend: %w", err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("git server: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("git server listens on %s, which has no port", listener.Addr())
	}
	s := &Server{dir: dir, port: address.Port, ca: ca, done: make(chan error, 1)}
	handler := &cgi.Handler{
		Path: backend,
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + dir},
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			if before := s.before.Load(); before != nil && (*before)(w, r) {
				return
			}
			handler.ServeHTTP(w, r)
		}),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { s.done <- s.http.ServeTLS(listener, "", "") }()
	return s, nil
}

// URL of the repository with that name.
func (s *Server) URL(name string) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())) + "/" + name + ".git"
}

// Port that the server listens on.
func (s *Server) Port() int { return s.port }

// CA is the PEM certificate that clients have to trust.
func (s *Server) CA() []byte { return s.ca }

// Requests counts HTTP requests so far: what a fetch cost.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Close stops serving; the repositories stay.
func (s *Server) Close() error {
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("close git server: %w", err)
	}
	if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("git server ended: %w", err)
	}
	return nil
}

// Repository is one served repository with a work tree beside it.
type Repository struct {
	name string
	work string
}

// Repository makes (or opens) a repository whose branch is main.
func (s *Server) Repository(ctx context.Context, name string) (*Repository, error) {
	bare := filepath.Join(s.dir, name+".git")
	r := &Repository{name: name, work: filepath.Join(s.dir, name+".work")}
	if _, err := os.Stat(bare); err == nil {
		return r, nil
	}
	if err := os.MkdirAll(r.work, 0o755); err != nil {
		return nil, fmt.Errorf("work tree: %w", err)
	}
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", bare},
		{"-C", bare, "config", "uploadpack.allowAnySHA1InWant", "true"},
		{"-C", bare, "config", "uploadpack.allowFilter", "true"},
		{"-C", bare, "config", "receive.denyDeleteCurrent", "ignore"},
		{"-C", r.work, "init", "-q", "-b", "main"},
		{"-C", r.work, "remote", "add", "origin", bare},
	} {
		if err := git(ctx, args...); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Commit replaces the whole tree of main by files (path to content), pushes it
// and returns the commit.
func (r *Repository) Commit(ctx context.Context, message string, files map[string]string) (string, error) {
	entries, err := os.ReadDir(r.work)
	if err != nil {
		return "", fmt.Errorf("work tree: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.work, entry.Name())); err != nil {
			return "", fmt.Errorf("work tree: %w", err)
		}
	}
	return r.Add(ctx, message, files)
}

// Add writes files over what main has, pushes and returns the commit.
func (r *Repository) Add(ctx context.Context, message string, files map[string]string) (string, error) {
	for path, content := range files {
		full := filepath.Join(r.work, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return "", fmt.Errorf("work tree: %w", err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			return "", fmt.Errorf("work tree: %w", err)
		}
	}
	return r.Push(ctx, message)
}

// Dir is the work tree, for contents that do not fit a map; Push commits it.
func (r *Repository) Dir() string { return r.work }

// Push commits the whole work tree to main, pushes and returns the commit.
func (r *Repository) Push(ctx context.Context, message string) (string, error) {
	for _, args := range [][]string{
		{"-C", r.work, "add", "-A"},
		{
			"-C", r.work, "-c", "user.name=tester", "-c", "user.email=tester@example.test",
			"commit", "-q", "--allow-empty", "-m", message,
		},
		{"-C", r.work, "push", "-q", "--force", "origin", "main", "--tags"},
	} {
		if err := git(ctx, args...); err != nil {
			return "", err
		}
	}
	return r.Head(ctx)
}

func git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// selfSigned makes a certificate for 127.0.0.1 and localhost that is its own CA.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "git server of a test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(0, 0, 7),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
