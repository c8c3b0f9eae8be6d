// SPDX-License-Identifier: Apache-2.0

// Command bench measures the numbers that convoy promises, on real control
// planes with the hub and agents installed from their manifests, and writes
// docs/benchmarks.md. It stands outside the flow and looks at it as a user
// would: start is a request to an API server, end is what a watch shows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options say how much is measured.
type options struct {
	agents, push, releases, foreign, many int
	stretch, rest                         time.Duration
	memory                                string
}

// bed is what all measurements share. What only some need is made when it is asked for.
type bed struct {
	opts     options
	programs install.Programs
	dir      string
	git      *gitserver.Server
	out      *report

	planes []*harness.Plane
	hub    *install.Hub
	edge   *install.Edge
	// resting is since when nothing happens on the edge, if that is so.
	resting time.Time

	fleet *fleet
}

// A measurement adds its rows to the report.
type measurement struct {
	name string
	run  func(context.Context, *bed) error
}

// In this order: what comes later finds more on the planes. While simulated agents
// connect to a hub of their own the edge is at rest.
var measurements = []measurement{
	{"render", renders},
	{"status", statusWrites},
	{"memory", agentMemory},
	{"latency", applyLatency},
	{"bulk", bulk},
	// It stops the hub, whose agent then comes back in its own time.
	{"drift", driftLatency},
	{"waves", changedWaves},
	{"many", manyReleases},
	{"objects", manyObjects},
	{"foreign", foreignObjects},
	{"agents", idleAgents},
	{"rest", atRest},
	{"back", comeBack},
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var names []string
	for _, m := range measurements {
		names = append(names, m.name)
	}
	b := &bed{out: newReport(os.Stdout)}
	only := flags.String("only", "", "comma-separated measurements of "+strings.Join(names, ", ")+"; default all, and only then is the page written")
	page := flags.String("page", "docs/benchmarks.md", "file that is written")
	flags.IntVar(&b.opts.agents, "agents", 10000, "simulated agents")
	flags.IntVar(&b.opts.push, "push", 2000, "how many of them are pushed a render of 1 MiB; 0: none, and no more than there are")
	flags.IntVar(&b.opts.releases, "releases", 10000, "Releases of the hub that is restarted")
	flags.IntVar(&b.opts.foreign, "foreign", 50000, "objects on the edge that are not ours")
	flags.IntVar(&b.opts.many, "many", 1000, "Releases in one cluster")
	flags.DurationVar(&b.opts.stretch, "stretch", 90*time.Second, "how long what is idle is looked at, at least")
	flags.DurationVar(&b.opts.rest, "rest", 30*time.Second, "how long memory is left alone before it is read")
	flags.StringVar(&b.opts.memory, "memory", "2GiB", "GOMEMLIMIT of the hub of the simulated agents")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := harness.RepoRoot()
	if err != nil {
		return err
	}
	if b.programs, err = install.Build(ctx); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "convoy-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.git, err = gitserver.Start(ctx, b.dir, "127.0.0.1:0"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.git.Close()) }()
	defer func() { err = errors.Join(err, b.close()) }()
	for _, m := range measurements {
		if *only != "" && !strings.Contains(","+*only+",", ","+m.name+",") {
			continue
		}
		start := time.Now()
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("# %s took %s\n", m.name, time.Since(start).Round(time.Second))
	}
	fmt.Print(b.out)
	if *only != "" {
		return nil
	}
	return os.WriteFile(filepath.Join(root, *page), []byte(b.out.page(ctx)), 0o644)
}

// needPlanes starts a host with a hub and an edge with an agent, once.
func (b *bed) needPlanes(ctx context.Context) error {
	if b.planes != nil {
		return nil
	}
	planes, err := harness.StartAll(ctx, harness.Options{Name: "hub"}, harness.Options{Name: "edge-1"})
	if err != nil {
		return err
	}
	b.planes = planes
	if b.hub, err = install.StartHub(ctx, planes[0], b.programs); err != nil {
		return err
	}
	if _, err := planes[0].Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	if b.edge, err = b.hub.Join(ctx, planes[1], namespace, "edge-1"); err != nil {
		return err
	}
	_, err = planes[1].Kubectl(ctx, "create", "namespace", namespace)
	return err
}

func (b *bed) closePlanes() error {
	var err error
	for _, plane := range b.planes {
		err = errors.Join(err, plane.Stop())
	}
	b.planes, b.hub, b.edge = nil, nil, nil
	return err
}

// needFleet starts the hub of the simulated agents, once.
func (b *bed) needFleet(ctx context.Context) (*fleet, error) {
	if b.fleet != nil {
		return b.fleet, nil
	}
	start := time.Now()
	var err error
	if b.fleet, err = newFleet(ctx, b); err != nil {
		return nil, err
	}
	fmt.Printf("# %d Clusters took %s\n", b.opts.agents, time.Since(start).Round(time.Second))
	return b.fleet, nil
}

func (b *bed) close() error {
	err := b.closePlanes()
	if b.fleet != nil {
		err = errors.Join(err, b.fleet.close())
	}
	return err
}
