// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Plane is one running control plane. It is safe for concurrent use.
type Plane struct {
	// Static after Start.
	opts    Options
	bin     Bin
	sup     *Supervisor
	dir     string
	sockets string
	port    int
	ca      *pair
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface

	// mu guards processes.
	mu        sync.Mutex
	processes map[Component]*Process
}

// socketPath is the longest path that a unix socket may have on Linux.
const socketPath = 107

// Start starts a control plane and returns when it is ready: the API server
// says so, the admin is admin, and, with the components that make them, the
// default ServiceAccount exists and the node is Ready. The caller must call
// Stop. It is fine to start several at the same time.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	if opts.Name == "" {
		opts.Name = "plane"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("plane %s: not ready after %s", opts.Name, startTimeout))
	defer cancel()
	bin, err := Binaries(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	sup, err := NewSupervisor(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		opts: opts, bin: bin, sup: sup,
		dir:       filepath.Join(sup.Dir(), opts.Name),
		processes: map[Component]*Process{},
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start plane %s: %w", opts.Name, err), sup.Close())
	}
	return p, nil
}

// T starts a plane for a test, which fails when that fails, and stops it when
// the test ends. The logs of a test that failed are kept with -artifacts.
func T(t testing.TB, opts Options) *Plane {
	t.Helper()
	p, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.tellFailure(t)
		}
		if err := p.Stop(); err != nil {
			t.Errorf("stop plane: %v", err)
		}
	})
	return p
}

// StartAll starts planes at the same time. Either all are started or none.
func StartAll(ctx context.Context, all ...Options) ([]*Plane, error) {
	planes := make([]*Plane, len(all))
	g, gctx := errgroup.WithContext(ctx)
	for i, o := range all {
		g.Go(func() error {
			var err error
			planes[i], err = Start(gctx, o)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		return planes, nil
	}
	for _, p := range planes {
		if p != nil {
			err = errors.Join(err, p.Stop())
		}
	}
	return nil, err
}

func (p *Plane) start(ctx context.Context) error {
	var err error
	if err = os.Mkdir(p.dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	p.sockets = p.dir
	if len(filepath.Join(p.dir, "etcd.sock")) > socketPath {
		if p.sockets, err = os.MkdirTemp("", "convoy-sock-"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err = p.sup.RemoveAtEnd(ctx, p.sockets); err != nil {
			return errors.Join(err, os.RemoveAll(p.sockets))
		}
	}
	if p.port, err = FreePort(ctx); err != nil {
		return err
	}
	if err = p.prepare(); err != nil {
		return err
	}
	if p.client, err = kubernetes.NewForConfig(p.config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if p.dynamic, err = dynamic.NewForConfig(p.config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for _, c := range []Component{Etcd, APIServer} {
		if err = p.StartComponent(ctx, c); err != nil {
			return err
		}
	}
	if err = p.bootstrap(ctx); err != nil {
		return err
	}
	for _, c := range []Component{ControllerManager, Scheduler, Kwok} {
		if !p.opts.has(c) {
			continue
		}
		if err = p.StartComponent(ctx, c); err != nil {
			return err
		}
	}
	return p.settle(ctx)
}

// Stop ends the plane and everything started through it, and removes its
// folder. Stopping twice is allowed.
func (p *Plane) Stop() error { return p.sup.Close() }

// Name is the name that the options gave.
func (p *Plane) Name() string { return p.opts.Name }

// Dir is the plane's folder: certificates, kubeconfigs, logs, data.
func (p *Plane) Dir() string { return p.dir }

// Port is the port of the API server on 127.0.0.1.
func (p *Plane) Port() int { return p.port }

// URL is the address of the API server.
func (p *Plane) URL() string { return "https://127.0.0.1:" + strconv.Itoa(p.port) }

// Kubeconfig is the path of the admin's kubeconfig.
func (p *Plane) Kubeconfig() string { return filepath.Join(p.dir, "admin.kubeconfig") }

// CA is the certificate that the API server's is verified with, in PEM.
func (p *Plane) CA() []byte { return p.ca.certPEM }

// RESTConfig gives a copy of the admin's configuration, without a limit of
// requests on the client's side, and with the harness's user agent.
func (p *Plane) RESTConfig() *rest.Config { return rest.CopyConfig(p.config) }

// Client is the admin's typed client.
func (p *Plane) Client() kubernetes.Interface { return p.client }

// Dynamic is the admin's client for any kind.
func (p *Plane) Dynamic() dynamic.Interface { return p.dynamic }

// AuditLog is the path of the API server's audit log; see Audit.
func (p *Plane) AuditLog() string { return filepath.Join(p.dir, "audit.log") }

// LogFile is the path of a component's log.
func (p *Plane) LogFile(c Component) string { return filepath.Join(p.dir, string(c)+".log") }

// Supervisor is what holds the plane's processes. Programs started through it
// end with the plane.
func (p *Plane) Supervisor() *Supervisor { return p.sup }

// Run starts a program beside the plane; it ends with the plane at the latest.
func (p *Plane) Run(ctx context.Context, prog Program) (*Process, error) {
	return p.sup.Start(ctx, prog)
}

// PID is the process id of a component, 0 when it is not running.
func (p *Plane) PID(c Component) int {
	if proc := p.process(c); proc != nil && proc.Running() {
		return proc.PID()
	}
	return 0
}

func (p *Plane) process(c Component) *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.processes[c]
}

// StartComponent starts a component that is not running, on the same port and
// data as before, and waits until etcd or the API server serve. The others
// are not waited for.
func (p *Plane) StartComponent(ctx context.Context, c Component) error {
	if old := p.process(c); old != nil && old.Running() {
		return fmt.Errorf("start %s: it is running", c)
	}
	proc, err := p.sup.Start(ctx, p.program(c))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.processes[c] = proc
	p.mu.Unlock()
	switch c {
	case Etcd:
		return p.etcdReady(ctx)
	case APIServer:
		return p.apiServerReady(ctx)
	case ControllerManager, Scheduler, Kwok:
	}
	return nil
}

// StopComponent asks a component to end, kills it after 15 s, and waits.
func (p *Plane) StopComponent(ctx context.Context, c Component) error {
	proc := p.process(c)
	if proc == nil {
		return fmt.Errorf("stop %s: %w", c, ErrNotRunning)
	}
	_, err := proc.Stop(ctx)
	return err
}

// KillComponent kills a component with SIGKILL and waits for its end.
func (p *Plane) KillComponent(ctx context.Context, c Component) error {
	proc := p.process(c)
	if proc == nil {
		return fmt.Errorf("kill %s: %w", c, ErrNotRunning)
	}
	return proc.Kill9(ctx)
}

// StopAPIServer stops the API server; clients then get connection refused.
func (p *Plane) StopAPIServer(ctx context.Context) error { return p.StopComponent(ctx, APIServer) }

// StartAPIServer starts it again on the same port and waits until it is ready.
func (p *Plane) StartAPIServer(ctx context.Context) error { return p.StartComponent(ctx, APIServer) }

// StopEtcd stops etcd; the API server stays and answers with errors.
func (p *Plane) StopEtcd(ctx context.Context) error { return p.StopComponent(ctx, Etcd) }

// StartEtcd starts it again with the same data.
func (p *Plane) StartEtcd(ctx context.Context) error { return p.StartComponent(ctx, Etcd) }
