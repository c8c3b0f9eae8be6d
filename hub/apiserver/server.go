// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/cluster"
	"kumodo.io/convoy/hub/apiserver/hub"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/observer"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
)

// Config is all that a server needs.
type Config struct {
	// Options, validated. Etcd must name its servers by now.
	Options *Options
	// Host is how the host cluster is reached; nil with Options.Standalone.
	Host *rest.Config
	// Serving makes our certificate, unless --tls-cert-file is given.
	Serving Certifier
	// HubCA is the hub CA's certificate, PEM: whom to believe in standalone mode.
	HubCA []byte
	// Join is what the join subresource answers.
	Join JoinInfo
	// Hub is what the hub says of itself; nil: nothing.
	Hub func(ctx context.Context) (corev1alpha1.HubStatus, error)
	// Backup reads and writes what the hub has stored; nil: backup and restore are
	// refused.
	Backup hub.Backup
	// Terminating says whether a namespace of the host is being deleted; nil: there is
	// no host, or nobody to ask.
	Terminating func(ctx context.Context, namespace string) (bool, error)
	// ObserverURL is where previews are made and health, diff and history are answered;
	// empty: they are refused.
	ObserverURL string
	// ProveToObserver signs a request to it.
	ProveToObserver func(r *http.Request, body []byte)
	// ReadyzChecks are asked, beside the library's own, whether the hub is ready.
	ReadyzChecks []healthz.HealthChecker
	// Authorizer replaces the one that follows from the options, in tests.
	Authorizer authorizer.Authorizer
	// Clock, the real one when nil.
	Clock clock.PassiveClock
	// Logger for what has no context of its own.
	Logger logr.Logger
}

// JoinInfo is what an installer of an agent has to know of the hub.
type JoinInfo = cluster.JoinInfo

// Server serves the API.
type Server struct {
	// Static after New.
	generic   *genericapiserver.GenericAPIServer
	storage   Storage
	etcd      *clientv3.Client
	url       string
	serving   Certifier
	clock     clock.PassiveClock
	recording *recording
	prepared  chan struct{}
	ready     chan struct{}
}

// New builds the server and its storage. It listens, and its watch caches begin
// to read etcd, which must be there; nothing is served before Run. When it
// succeeds, Run must be called, since Run closes what New opened.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	sch, err := scheme.New()
	if err != nil {
		return nil, err
	}
	if len(c.Options.Etcd.StorageConfig.Transport.ServerList) == 0 {
		return nil, ErrNoEtcd
	}
	etcd, err := newEtcdClient(ctx, c.Options.Etcd.StorageConfig.Transport)
	if err != nil {
		return nil, err
	}
	// Before the library opens anything, which only a server that ran closes.
	if err := checkFormat(ctx, etcd); err != nil {
		return nil, errors.Join(err, etcd.Close())
	}
	config, err := c.library(sch)
	if err != nil {
		return nil, errors.Join(err, etcd.Close())
	}
	fail := func(err error) (*Server, error) {
		return nil, errors.Join(err, config.SecureServing.Listener.Close(), etcd.Close())
	}
	generic, err := config.Complete().New("convoy", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fail(fmt.Errorf("build API server: %w", err))
	}
	generic.ShutdownTimeout = shutdownTimeout
	gate := deletion.New(deletion.Options{
		Budget: c.Options.Budget, Authorizer: config.Authorization.Authorizer, Terminating: c.Terminating, Clock: c.Clock, Logger: c.Logger,
	})
	held, asked := &recording{}, observer.New(c.ObserverURL, c.ProveToObserver)
	core, source, storage, err := newStorage(storageOptions{
		scheme: sch, rest: config.RESTOptionsGetter, shards: c.Options.Shards, clock: c.Clock,
		join: c.Join, hub: hub.Options{Status: c.Hub, Backup: c.Backup, Clock: c.Clock}, authorizer: config.Authorization.Authorizer,
		gate: gate, recording: held, previews: asked, observations: asked,
	})
	if err != nil {
		return fail(err)
	}
	extensions, err := newExtensions(sch, config.RESTOptionsGetter, c.Clock, &storage)
	if err != nil {
		return fail(err)
	}
	gvs := scheme.GroupVersions()
	err = generic.InstallAPIGroups(
		group(sch, gvs[0].Group, gvs[0].Version, core),
		group(sch, gvs[1].Group, gvs[1].Version, source),
		group(sch, gvs[2].Group, gvs[2].Version, extensions),
	)
	if err != nil {
		return fail(fmt.Errorf("install API groups: %w", err))
	}
	return &Server{
		generic: generic, storage: storage, etcd: etcd, serving: c.Serving, clock: c.Clock,
		url:       "https://" + localAddress(config.SecureServing.Listener.Addr()),
		recording: held,
		prepared:  make(chan struct{}), ready: make(chan struct{}),
	}, nil
}

// Run serves until ctx ends, lets requests in flight finish and closes the
// storage. The other rooms must have stopped using it by then.
func (s *Server) Run(ctx context.Context) error {
	prepared := s.generic.PrepareRun()
	close(s.prepared)

	waitCtx, cancel := context.WithCancel(ctx)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		s.waitReady(waitCtx)
	}()
	err := prepared.RunWithContext(ctx)
	cancel()
	<-waited
	if err != nil {
		err = fmt.Errorf("serve API: %w", err)
	}
	return errors.Join(err, s.etcd.Close())
}

// Storage gives the other rooms access in process.
func (s *Server) Storage() Storage { return s.storage }

// EtcdClient is for keys of the hub's own under EtcdPrefix. Run closes it.
func (s *Server) EtcdClient() *clientv3.Client { return s.etcd }

// URL is where the server listens, on this machine.
func (s *Server) URL() string { return s.url }

// Ready is closed when the server was ready for the first time.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Probes answers /healthz, /livez and /readyz without asking who asks. It is for
// the hub's port for probes and metrics.
func (s *Server) Probes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.prepared:
			s.generic.Handler.Director.ServeHTTP(w, r)
		default:
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	})
}

func (s *Server) waitReady(ctx context.Context) {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		answer := httptest.NewRecorder()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody)
		if err == nil {
			s.Probes().ServeHTTP(answer, request)
			if answer.Code == http.StatusOK {
				close(s.ready)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
