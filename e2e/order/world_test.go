// SPDX-License-Identifier: Apache-2.0

// Package order_test shows on real control planes when a Release is ordered and when it
// is not: waves and dependencies between Releases, suspension, confirmed deletions, what
// a Cluster permits, accounts without rights, and retries. One hub and one edge serve
// all tests; each works in a namespace and a repository of its own.
package order_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	team = "team"
	edge = "edge-1"
	// patience is how long a test waits for what takes seconds on a machine at rest.
	patience = 8 * time.Minute
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is what all tests share.
var world struct {
	hub  *install.Hub
	edge *install.Edge
	git  *gitserver.Server
}

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	base, err := install.NewBase(ctx, "order", harness.Options{Name: "hub"}, harness.Options{Name: edge})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	world.git = base.Git
	if world.hub, err = install.StartHub(ctx, base.Planes[0], base.Programs); err != nil {
		return 1, err
	}
	if _, err := base.Planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return 1, err
	}
	if world.edge, err = world.hub.Join(ctx, base.Planes[1], team, edge); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// app is a repository, its source, and a namespace on the edge, all of one name.
type app struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // of one test
	name string
	repo *gitserver.Repository
}

func newApp(t *testing.T, name string, files map[string]string) *app {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	a := &app{t: t, ctx: ctx, name: name}
	var err error
	if a.repo, err = world.git.Repository(ctx, name); err != nil {
		t.Fatal(err)
	}
	a.commit(files)
	if err := world.hub.Source(ctx, world.git, team, name, metav1.Duration{Duration: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	a.onEdge("create", "namespace", name)
	return a
}

func (a *app) commit(files map[string]string) string {
	a.t.Helper()
	commit, err := a.repo.Commit(a.ctx, "change", files)
	if err != nil {
		a.t.Fatal(err)
	}
	return commit
}

// release applies a Release of a folder; its name is that of the app and the folder.
func (a *app) release(folder string, mods ...func(*corev1alpha1.ReleaseSpec)) {
	a.t.Helper()
	release := install.Release(team, a.named(folder), edge, a.name, folder)
	release.Spec.TargetNamespace = a.name
	for _, mod := range mods {
		mod(&release.Spec)
	}
	if err := world.hub.ApplyObjects(a.ctx, release); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) named(folder string) string { return a.name + "-" + folder }

// patch is a merge patch of the spec of a Release.
func (a *app) patch(folder, spec string) {
	a.t.Helper()
	a.onHub("-n", team, "patch", "release", a.named(folder), "--type=merge", "-p", `{"spec":`+spec+`}`)
}

func (a *app) onHub(args ...string) string {
	a.t.Helper()
	out, err := world.hub.Plane.Kubectl(a.ctx, args...)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

func (a *app) onEdge(args ...string) string {
	a.t.Helper()
	out, err := world.edge.Plane.Kubectl(a.ctx, args...)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// until waits for a Release to be as wanted.
func (a *app) until(folder string, wanted func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	a.t.Helper()
	var last *corev1alpha1.Release
	_, err := harness.WaitFor(a.ctx, world.hub.Plane.Dynamic(), install.Releases, team, a.named(folder), func(u *unstructured.Unstructured) (bool, error) {
		release, err := harness.As[corev1alpha1.Release](u)
		if err != nil {
			return false, err
		}
		last = release
		return wanted(release), nil
	})
	if err != nil {
		a.t.Fatal(err, install.Tail(world.hub.Pod.Log()), install.Tail(world.edge.Pod.Log()))
	}
	return last
}

// ready waits for a Release that is well at a commit.
func (a *app) ready(folder, commit string) *corev1alpha1.Release {
	a.t.Helper()
	return a.until(folder, func(r *corev1alpha1.Release) bool {
		return r.Status.ObservedGeneration == r.Generation && strings.HasSuffix(r.Status.SourceRevision, commit) && is(r, "Ready", "True", "Ready", "")
	})
}

// says waits for what Applied says.
func (a *app) says(folder, status, reason, text string) *corev1alpha1.Release {
	a.t.Helper()
	return a.until(folder, func(r *corev1alpha1.Release) bool { return is(r, "Applied", status, reason, text) })
}

func is(r *corev1alpha1.Release, kind, status, reason, text string) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) == status && c.Reason == reason && strings.Contains(c.Message, text)
		}
	}
	return false
}

// value waits for a key of a ConfigMap on the edge.
func (a *app) value(name, key, want string) {
	a.t.Helper()
	_, err := harness.WaitFor(a.ctx, world.edge.Plane.Dynamic(), configMaps, a.name, name, func(u *unstructured.Unstructured) (bool, error) {
		got, _, err := unstructured.NestedString(u.Object, "data", key)
		return got == want, err
	})
	if err != nil {
		a.t.Fatal(err, install.Tail(world.edge.Pod.Log()))
	}
}

// has says whether a ConfigMap is on the edge now.
func (a *app) has(name string) bool {
	a.t.Helper()
	return a.onEdge("-n", a.name, "get", "configmap", name, "--ignore-not-found", "-o", "name") != ""
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %q}\n", name, value)
}

// refused is a manifest that no API server takes: the name of a key is none.
func refused(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {\"no key\": \"x\"}\n", name)
}
