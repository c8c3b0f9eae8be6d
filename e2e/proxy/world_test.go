// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// patience is how long a test waits for something that should take seconds: an
// agent that lost its session comes back after up to half a minute, twice that
// after the next loss, and the machine may be busy.
const patience = 5 * time.Minute

// sites at once, each with a control plane, one a test.
const sites = 5

// world is what all tests of the package share.
type world struct {
	dir      string
	sup      *harness.Supervisor
	programs install.Programs
	git      *gitserver.Server
	company  *authority
	// secure is a hub whose gateway has TLS of its own, open one that stands behind
	// a balancer.
	secure, open *center
}

// center is a hub in a network of its own, which reaches its host and the Git
// server, and is reached on address by whom a link and a route lead to it.
type center struct {
	*install.Hub
	net     *network
	address string
	plain   bool
	ca      []byte
	// edges are control planes that no site has yet. The host of each hub is an edge
	// of the other.
	edges chan *harness.Plane
}

var shared world

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv(victimEnv) != "" {
		return 1, victim(context.Background())
	}
	// The tests wait for clocks more than for processors.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*sites)); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	w := &shared
	if w.programs, err = install.Build(ctx); err != nil {
		return 1, err
	}
	if w.sup, err = harness.NewSupervisor(ctx, ""); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, w.sup.Close()) }()
	if w.dir, err = os.MkdirTemp("", "convoy-proxy-"); err != nil {
		return 1, err
	}
	// Squid and what it starts are another user.
	if err = errors.Join(os.Chmod(w.dir, 0o755), w.sup.RemoveAtEnd(ctx, w.dir)); err != nil {
		return 1, err
	}
	if w.company, err = newAuthority(); err != nil {
		return 1, err
	}
	if w.git, err = gitserver.Start(ctx, filepath.Join(w.dir, "git"), "127.0.0.1:0"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, w.git.Close()) }()
	var options []harness.Options
	for _, name := range []string{"secure", "open", "edge-1", "edge-2", "edge-3"} {
		options = append(options, harness.Options{Name: name, UnsafeNoFsync: true})
	}
	planes, err := harness.StartAll(ctx, options...)
	if err != nil {
		return 1, err
	}
	defer func() {
		for _, plane := range planes {
			err = errors.Join(err, plane.Stop())
		}
	}()
	var starting sync.WaitGroup
	var failed [2]error
	starting.Go(func() { w.secure, failed[0] = w.center(ctx, planes[0], "198.18.0.1", false) })
	starting.Go(func() { w.open, failed[1] = w.center(ctx, planes[1], "198.18.0.2", true) })
	starting.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return 1, err
	}
	for i, plane := range planes {
		if i == 0 {
			w.open.edges <- plane
		} else {
			w.secure.edges <- plane
		}
	}
	return m.Run(), nil
}

// center installs a hub. The gateway listens where the manifest says, since it
// has the network for itself.
func (w *world) center(ctx context.Context, plane *harness.Plane, address string, plain bool) (*center, error) {
	c := &center{address: address, plain: plain, edges: make(chan *harness.Plane, sites)}
	var err error
	if c.net, err = newNetwork(ctx, "hub "+plane.Name()); err != nil {
		return nil, err
	}
	if err := c.net.ip(ctx, "addr", "add", address+"/32", "dev", "lo"); err != nil {
		return nil, err
	}
	inside := func(h *install.Hub) {
		h.Network = c.net.path()
		delete(h.Args, "--gateway-addr")
		h.Args["--gateway-url"] = "wss://" + net.JoinHostPort(address, gatewayPort)
		if plain {
			h.Args["--gateway-plain"] = "true"
		}
		for _, r := range []struct {
			from, to *network
			port     int
		}{{c.net, nil, plane.Port()}, {c.net, nil, w.git.Port()}, {nil, c.net, h.APIPort}, {nil, c.net, h.MetricsPort}} {
			at := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port))
			if _, relayErr := newRelay(ctx, r.from, at, r.to, at); relayErr != nil {
				err = errors.Join(err, relayErr)
			}
		}
	}
	// The relays end with this process.
	if c.Hub, err = install.StartHub(ctx, plane, w.programs, inside); err != nil {
		return nil, err
	}
	secret, err := plane.Client().CoreV1().Secrets(install.HubNamespace).Get(ctx, "convoy-hub-ca", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	c.ca = secret.Data["tls.crt"]
	return c, nil
}

// network makes one for a test.
func (w *world) network(ctx context.Context, t *testing.T, name string) *network {
	t.Helper()
	n, err := newNetwork(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// within bounds the waits of one test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
