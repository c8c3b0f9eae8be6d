// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// patience for one thing to become so, on a busy machine.
const patience = 2 * time.Minute

// soak says whether every n is tried.
func soak() bool { return os.Getenv("CONVOY_SOAK") != "" }

// world is what all tests of the package share.
type world struct {
	programs   install.Programs
	host, edge *harness.Plane
	hub        *install.HubProcess
	git        *gitserver.Server
	repository *gitserver.Repository
	etcd       *harness.Process
	relay      *relay
	dir        string
}

// lives is more than all that the soak form makes in one namespace.
const lives = 10_000

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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	w := &shared
	if w.programs, err = install.Build(ctx); err != nil {
		return 1, err
	}
	planes, err := harness.StartAll(ctx,
		harness.Options{Name: "hub", UnsafeNoFsync: true, Without: []harness.Component{harness.ControllerManager, harness.Scheduler, harness.Kwok}},
		// Deployments of this suite have no pods.
		harness.Options{Name: "edge", UnsafeNoFsync: true, Without: []harness.Component{harness.Scheduler, harness.Kwok}})
	if err != nil {
		return 1, err
	}
	w.host, w.edge = planes[0], planes[1]
	defer func() { err = errors.Join(err, w.host.Stop(), w.edge.Stop()) }()
	if w.dir, err = os.MkdirTemp("", "convoy-crash-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.dir)) }()
	if w.git, err = gitserver.Start(ctx, filepath.Join(w.dir, "git"), "127.0.0.1:0"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, w.git.Close()) }()
	if w.repository, err = w.git.Repository(ctx, "apps"); err != nil {
		return 1, err
	}
	files := map[string]string{}
	for i := range workers + 1 {
		contents(files, i)
	}
	if _, err := w.repository.Commit(ctx, "all", files); err != nil {
		return 1, err
	}
	if w.hub, err = install.NewHubProcess(ctx, w.host, w.programs, filepath.Join(w.dir, "hub")); err != nil {
		return 1, err
	}
	if w.relay, w.etcd, err = startEtcd(ctx, w.host, w.dir); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, w.relay.close()) }()
	w.hub.Etcd = w.relay.Address
	// Every life ends with a removal: more of them than the hub lets go by default.
	w.hub.Flags = []string{"--gateway-drain-timeout=0s", fmt.Sprintf("--deletion-budget-count=%d", lives)}
	if err := w.hub.Up(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// source makes a namespace on the hub with the GitRepository.
func (w *world) source(ctx context.Context, namespace string) error {
	if _, err := w.host.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	return w.hub.Source(ctx, w.git, namespace, "apps", metav1.Duration{Duration: time.Hour})
}
