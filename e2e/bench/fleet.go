// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// fleetNamespace of the Clusters, and stored is where a hub keeps its objects.
	fleetNamespace = "fleet"
	stored         = "/registry/convoy.kumodo.io/"
	// spare descriptors of a process beside those of its connections.
	spare = 1000
)

// fleet is a hub without a host, its etcd, and simulated agents: nothing else
// takes from the machine, and the hub's memory is the hub's alone.
type fleet struct {
	opts       options
	out        *report
	supervisor *harness.Supervisor
	git        *gitserver.Server
	dir        string
	program    string // simagent
	hubProgram string
	etcd       *clientv3.Client
	endpoint   string

	apiPort, gatewayPort, metricsPort int

	hub        *harness.Process
	api        dynamic.Interface // made anew by start
	identities []*link.Identity
	running    []*simulated
	starts     int
	released   int // Releases so far
}

// newFleet starts etcd and the hub, and makes the Clusters. Nobody is connected.
func newFleet(ctx context.Context, b *bed) (_ *fleet, err error) {
	f := &fleet{opts: b.opts, out: b.out, git: b.git, dir: filepath.Join(b.dir, "fleet"), hubProgram: b.programs.Hub}
	if err := allowDescriptors(uint64(f.opts.agents + spare)); err != nil {
		return nil, err
	}
	if f.program, err = buildSimulated(ctx); err != nil {
		return nil, err
	}
	secret := filepath.Join(f.secrets(), fleetNamespace, install.GitCA)
	if err := os.MkdirAll(secret, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(secret, "ca.crt"), b.git.CA(), 0o600); err != nil {
		return nil, err
	}
	for _, port := range []*int{&f.apiPort, &f.gatewayPort, &f.metricsPort} {
		if *port, err = harness.FreePort(ctx); err != nil {
			return nil, err
		}
	}
	if f.supervisor, err = harness.NewSupervisor(ctx, ""); err != nil {
		return nil, err
	}
	if err := f.begin(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleet) begin(ctx context.Context) error {
	if err := f.startEtcd(ctx); err != nil {
		return err
	}
	if _, err := f.start(ctx); err != nil {
		return err
	}
	return f.makeClusters(ctx)
}

func (f *fleet) secrets() string { return filepath.Join(f.dir, "secrets") }

func (f *fleet) data() string { return filepath.Join(f.dir, "hub") }

func (f *fleet) close() error {
	if f.etcd == nil {
		return f.supervisor.Close()
	}
	return errors.Join(f.etcd.Close(), f.supervisor.Close())
}

// allowDescriptors raises what this process, and those that it starts, may open.
func allowDescriptors(want uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	if limit.Cur >= want {
		return nil
	}
	limit.Cur, limit.Max = max(limit.Cur, want), max(limit.Max, want)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("open %d files, of which there may be fewer (ulimit -Hn): %w", want, err)
	}
	return nil
}

// startEtcd starts an etcd that waits for the disk as it should.
func (f *fleet) startEtcd(ctx context.Context) error {
	bin, err := harness.Binaries(ctx)
	if err != nil {
		return err
	}
	dir := f.supervisor.Dir()
	peer := "unix://" + filepath.Join(dir, "p.sock")
	f.endpoint = "unix://" + filepath.Join(dir, "e.sock")
	if _, err := f.supervisor.Start(ctx, harness.Program{
		Name: "etcd-of-the-fleet", Path: bin.Path("etcd"),
		Args: []string{
			"--name=default", "--data-dir=" + filepath.Join(dir, "etcd"), "--listen-client-urls=" + f.endpoint, "--advertise-client-urls=" + f.endpoint,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--log-level=warn",
			"--quota-backend-bytes=" + strconv.Itoa(4<<30),
		},
	}); err != nil {
		return err
	}
	f.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{f.endpoint}, Logger: zap.NewNop(), DialTimeout: 30 * time.Second})
	return err
}

// revision of etcd: how many writes there were.
func (f *fleet) revision(ctx context.Context) (int64, error) {
	answer, err := f.etcd.Get(ctx, stored, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// start starts the hub and gives the time until it says that it is ready: its
// caches are complete then.
func (f *fleet) start(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f.starts++
	began := time.Now()
	var err error
	f.hub, err = f.supervisor.Start(ctx, harness.Program{
		Name: fmt.Sprintf("hub-%d", f.starts), Path: f.hubProgram, Env: append(os.Environ(), "GOMEMLIMIT="+f.opts.memory),
		Args: []string{
			"--standalone", "--data-dir=" + f.data(), "--etcd-servers=" + f.endpoint,
			"--secure-port=" + strconv.Itoa(f.apiPort), "--gateway-addr=" + loopback(f.gatewayPort), "--metrics-addr=" + loopback(f.metricsPort),
			"--source-allow-cidr=127.0.0.0/8", "--standalone-secrets-dir=" + f.secrets(), "--log-format=json",
		},
	})
	if err != nil {
		return 0, err
	}
	if err := f.untilReady(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(f.data(), "admin.kubeconfig"))
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	f.api, err = dynamic.NewForConfig(config)
	return took, err
}

func (f *fleet) untilReady(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(f.metricsPort)+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !f.hub.Running() {
			return fmt.Errorf("the hub has ended: %s", install.Tail(f.hub.Log()))
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the hub is not ready: %s: %w", install.Tail(f.hub.Log()), err)
		}
	}
}

// metrics of the hub.
func (f *fleet) metrics(ctx context.Context) (samples, error) {
	return scrape(ctx, "http://"+loopback(f.metricsPort)+"/metrics")
}

// usage of a process, in KiB.
type usage struct {
	private, heap, stacks float64
	goroutines            float64
}

// usage of the hub. The heap is what was live at its last collection.
func (f *fleet) usage(ctx context.Context) (usage, error) {
	private, err := memory(f.hub.PID(), "RssAnon")
	if err != nil {
		return usage{}, err
	}
	s, err := f.metrics(ctx)
	return usage{
		private: float64(private), heap: s.sum("go_gc_heap_live_bytes") / 1024, stacks: s.sum("go_memstats_stack_inuse_bytes") / 1024,
		goroutines: s.sum("go_goroutines"),
	}, err
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
