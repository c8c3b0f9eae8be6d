// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"kumodo.io/convoy/hub/store"
)

const scheme = "oci"

// Options of a Backend.
type Options struct {
	// URL of the repository: oci://host/path.
	URL string
	// PlainHTTP is for a registry without TLS.
	PlainHTTP bool
	// DockerConfig is a file with credentials, or empty. It is read again whenever
	// the registry asks for credentials. Programs that it names are not run.
	DockerConfig string
	// CAFile has certificates to trust besides the system's, PEM, or is empty.
	CAFile string
	// Dir takes blobs that are being written; made if need be. One process has it.
	Dir string
	// Clock is the real one by default.
	Clock clock.PassiveClock
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Backend keeps blobs in a registry.
type Backend struct {
	repository *remote.Repository
	transport  *http.Transport
	dir        string
	clock      clock.PassiveClock
	metrics    *metrics
	// naming is held for reading while a blob gets its tag, and for writing while one
	// is looked at and taken away.
	naming sync.RWMutex

	mu     sync.Mutex
	stored map[string]time.Time // tag -> when it was put, as far as known
}

var _ store.Backend = (*Backend)(nil)

// New makes a Backend. It asks the registry nothing yet.
func New(o Options) (*Backend, error) {
	reference, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(o.CAFile)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	temp := filepath.Join(o.Dir, "upload")
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return nil, fmt.Errorf("render store: %w", err)
	}
	b := &Backend{transport: transport, dir: temp, clock: o.Clock, metrics: m, stored: map[string]time.Time{}}
	client := &auth.Client{Client: &http.Client{Transport: retry.NewTransport(transport)}, Cache: auth.NewCache()}
	client.SetUserAgent("convoy")
	if o.DockerConfig != "" {
		if _, err := credentials.NewFileStore(o.DockerConfig); err != nil {
			return nil, fmt.Errorf("render store: %s: %w", o.DockerConfig, err)
		}
		client.Credential = func(ctx context.Context, host string) (auth.Credential, error) {
			file, err := credentials.NewFileStore(o.DockerConfig)
			if err != nil {
				return auth.EmptyCredential, err
			}
			return credentials.Credential(file)(ctx, host)
		}
	}
	b.repository = &remote.Repository{
		Reference: reference, Client: client, PlainHTTP: o.PlainHTTP,
		MaxMetadataBytes: maxMetadataBytes, TagListPageSize: tagPage, TagListMaxPages: maxPages, SkipReferrersGC: true,
	}
	return b, nil
}

func parse(text string) (registry.Reference, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != scheme || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return registry.Reference{}, ErrURL
	}
	reference := registry.Reference{Registry: u.Host, Repository: strings.Trim(u.Path, "/")}
	if reference.ValidateRegistry() != nil || reference.ValidateRepository() != nil {
		return registry.Reference{}, ErrURL
	}
	return reference, nil
}

func newTransport(caFile string) (*http.Transport, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: headerTimeout, ResponseHeaderTimeout: headerTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile == "" {
		return transport, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("render store: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("render store: %s: %w", caFile, ErrCA)
	}
	transport.TLSClientConfig.RootCAs = roots
	return transport, nil
}

// Close lets idle connections go.
func (b *Backend) Close() { b.transport.CloseIdleConnections() }

// Folders of package store, and how their tags begin.
const (
	folderPlain  = "sha256"
	folderSealed = "sealed"
	prefixPlain  = "objects-"
	prefixSealed = "sealed-"
	prefixAside  = "aside-"
)

// tagOf gives the tag of a name. Names are made by package store; the check is a
// second lock.
func tagOf(name string) (tag, folder, digits string, err error) {
	folder, digits, _ = strings.Cut(name, "/")
	if _, err := store.CheckDigest("sha256:" + digits); err != nil {
		return "", "", "", fmt.Errorf("%w: %q", err, name)
	}
	switch folder {
	case folderPlain:
		return prefixPlain + digits, folder, digits, nil
	case folderSealed:
		return prefixSealed + digits, folder, digits, nil
	default:
		return "", "", "", fmt.Errorf("%w: %q", store.ErrDigest, name)
	}
}

// remember when a blob was put; the zero time forgets it.
func (b *Backend) remember(tag string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.IsZero() {
		delete(b.stored, tag)
		return
	}
	if _, known := b.stored[tag]; !known && len(b.stored) >= maxRemembered {
		for other := range b.stored { // any: it is asked for again
			delete(b.stored, other)
			break
		}
	}
	b.stored[tag] = at
}

func (b *Backend) remembered(tag string) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.stored[tag]
	return at, ok
}
