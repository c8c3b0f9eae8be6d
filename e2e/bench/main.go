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

// bed is what all measurements share.
type bed struct {
	hub  *install.Hub
	edge *install.Edge
	git  *gitserver.Server
	out  *report
}

// A measurement adds its rows to the report.
type measurement struct {
	name string
	run  func(context.Context, *bed) error
}

// In this order: what comes later finds more on the planes.
var measurements = []measurement{
	{"status", statusWrites},
	{"latency", applyLatency},
	{"bulk", bulk},
	// It stops the hub, whose agent then comes back in its own time.
	{"drift", driftLatency},
	{"agents", idleAgents},
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "comma-separated measurements; default all, and only then is the page written")
	page := flags.String("page", "docs/benchmarks.md", "file that is written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := harness.RepoRoot()
	if err != nil {
		return err
	}
	programs, err := install.Build(ctx)
	if err != nil {
		return err
	}
	planes, err := harness.StartAll(ctx, harness.Options{Name: "hub"}, harness.Options{Name: "edge-1"})
	if err != nil {
		return err
	}
	defer func() {
		for _, plane := range planes {
			err = errors.Join(err, plane.Stop())
		}
	}()
	dir, err := os.MkdirTemp("", "convoy-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bed{out: newReport(os.Stdout)}
	if b.git, err = gitserver.Start(ctx, dir, "127.0.0.1:0"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.git.Close()) }()
	if b.hub, err = install.StartHub(ctx, planes[0], programs); err != nil {
		return err
	}
	if _, err := planes[0].Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	if b.edge, err = b.hub.Join(ctx, planes[1], namespace, "edge-1"); err != nil {
		return err
	}
	if _, err := planes[1].Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
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
