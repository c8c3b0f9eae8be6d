// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// World is what cases are played on: a host with a hub, one edge cluster and a Git
// server. Further edges come when a case asks for them.
type World struct {
	Hub  *install.HubProcess
	Edge *harness.Plane
	Git  *gitserver.Server

	programs install.Programs
	dir      string
	host     *harness.Plane
	borrowed bool // Edge is another world's
	mu       sync.Mutex
	edges    []*harness.Plane // beside Edge; guarded by mu
	hubMu    sync.Mutex       // held while the hub is away on purpose
}

// Start builds the programs and starts a world. Close ends it, also when Start gave an
// error.
func Start(ctx context.Context) (w *World, err error) { return start(ctx, nil) }

// start starts a world, with another world's edge if one is given.
func start(ctx context.Context, edge *harness.Plane) (w *World, err error) {
	w = &World{Edge: edge, borrowed: edge != nil}
	if w.programs, err = install.Build(ctx); err != nil {
		return w, fmt.Errorf("build: %w", err)
	}
	if w.dir, err = os.MkdirTemp("", "convoy-cases-"); err != nil {
		return w, fmt.Errorf("start: %w", err)
	}
	// The hub uses no controller of its host's.
	options := []harness.Options{{Name: "hub", UnsafeNoFsync: true, Without: []harness.Component{harness.ControllerManager, harness.Scheduler, harness.Kwok}}}
	if edge == nil {
		options = append(options, harness.Options{Name: "edge", UnsafeNoFsync: true})
	}
	planes, err := harness.StartAll(ctx, options...)
	if err != nil {
		return w, fmt.Errorf("start: %w", err)
	}
	if w.host = planes[0]; edge == nil {
		w.Edge = planes[1]
	}
	if w.Git, err = gitserver.Start(ctx, w.gitDir(), "127.0.0.1:0"); err != nil {
		return w, fmt.Errorf("start: %w", err)
	}
	if w.Hub, err = install.NewHubProcess(ctx, w.host, w.programs, filepath.Join(w.dir, "hub")); err != nil {
		return w, fmt.Errorf("start: %w", err)
	}
	w.Hub.Flags = []string{"--gateway-drain-timeout=0s"}
	return w, w.Hub.Up(ctx)
}

// gitDir has the repositories.
func (w *World) gitDir() string { return filepath.Join(w.dir, "git") }

// secretFile is a file that the hub can read and no render may.
func (w *World) secretFile() string { return w.host.Kubeconfig() }

// Close ends everything, whether ctx has ended or not.
func (w *World) Close(ctx context.Context) error {
	var errs []error
	if w.Hub != nil && w.Hub.Process() != nil && w.Hub.Process().Running() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		errs = append(errs, w.Hub.Stop(ctx))
	}
	if w.Git != nil {
		errs = append(errs, w.Git.Close())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, plane := range append(w.edges, w.Edge, w.host) {
		if plane != nil && (plane != w.Edge || !w.borrowed) {
			errs = append(errs, plane.Stop())
		}
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}

// NewEdge starts one more cluster.
func (w *World) NewEdge(ctx context.Context, name string) (*harness.Plane, error) {
	plane, err := harness.Start(ctx, harness.Options{Name: name, UnsafeNoFsync: true})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.edges = append(w.edges, plane)
	return plane, nil
}

// Planes are all clusters of the world but the host.
func (w *World) Planes() []*harness.Plane {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*harness.Plane{w.Edge}, w.edges...)
}
