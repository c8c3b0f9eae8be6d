// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	team = "team-a"
	edge = "edge-shared"
	// mine is the namespace that the shared agent is for, others one that it is not.
	mine, others = "shop", "payments"
	repository   = "shop"
	patience     = 6 * time.Minute
)

// world is a hub installed from the overlay for an external etcd, and an agent in
// profile shared.
var world struct {
	dir  string
	git  *gitserver.Server
	etcd *etcd
	hub  *install.Hub
	edge *install.Edge
}

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	base, err := install.NewBase(ctx, "setup", harness.Options{Name: "hub"}, harness.Options{Name: edge})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	planes := base.Planes
	world.dir, world.git = base.Dir, base.Git
	if world.etcd, err = startEtcd(ctx, planes[0], world.dir); err != nil {
		return 1, err
	}
	if err := installHub(ctx, planes[0], base.Programs); err != nil {
		return 1, err
	}
	if err := join(ctx, planes[1]); err != nil {
		return 1, errors.Join(err, errors.New(install.Tail(world.hub.Pod.Log())))
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, install.Tail(world.edge.Pod.Log()))
	}
	return code, err
}

// installHub does what docs/install.md says for an external etcd: the Secret, the
// address, kubectl apply.
func installHub(ctx context.Context, plane *harness.Plane, programs install.Programs) error {
	root, err := harness.RepoRoot()
	if err != nil {
		return err
	}
	manifests, err := plane.Kubectl(ctx, "kustomize", filepath.Join(root, "manifests", "hub", "overlays", "external-etcd"))
	if err != nil {
		return err
	}
	const address = "https://etcd.example.com:2379"
	if !strings.Contains(manifests, address) {
		return fmt.Errorf("the overlay does not name %s, which a person is told to replace", address)
	}
	if _, err := plane.Kubectl(ctx, "create", "namespace", install.HubNamespace); err != nil {
		return err
	}
	_, err = plane.Kubectl(ctx, "-n", install.HubNamespace, "create", "secret", "generic", "convoy-etcd-client",
		"--from-file=ca.crt="+world.etcd.file("ca.crt"), "--from-file=tls.crt="+world.etcd.file("hub.crt"), "--from-file=tls.key="+world.etcd.file("hub.key"))
	if err != nil {
		return err
	}
	world.hub, err = install.StartHub(ctx, plane, programs, func(hub *install.Hub) {
		hub.Manifests = strings.ReplaceAll(manifests, address, world.etcd.url)
	})
	return err
}

func join(ctx context.Context, plane *harness.Plane) error {
	if _, err := world.hub.Plane.Kubectl(ctx, "create", "namespace", team); err != nil {
		return err
	}
	for _, namespace := range []string{mine, others} {
		if _, err := plane.Kubectl(ctx, "create", "namespace", namespace); err != nil {
			return err
		}
	}
	var err error
	world.edge, err = world.hub.Join(ctx, plane, team, edge, "--profile", "shared", "--namespaces", mine)
	return err
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until something is so.
func eventually(ctx context.Context, t *testing.T, what string, is func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, is); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
