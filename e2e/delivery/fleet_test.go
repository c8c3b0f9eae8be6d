// SPDX-License-Identifier: Apache-2.0

// Package delivery_test drives the whole flow, source to report, on real control
// planes: a host with the hub installed from its manifests and an edge whose
// agent joined with a token. One install serves all tests of the package; each
// test works in namespaces of its own.
package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// patience is how long a test waits for something that should take seconds:
// the machine may be busy, and no test is about speed.
const patience = 6 * time.Minute

const (
	// team is the namespace on the host that the edge's Cluster is in. Tests
	// that delete a namespace make their own, with their own Cluster.
	team = "team"
	edge = "edge-1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// fleet is what all tests of the package share.
type fleet struct {
	hub  *install.Hub
	edge *install.Edge
	git  *gitserver.Server
	dir  string
}

var shared fleet

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	base, err := install.NewBase(ctx, "delivery", harness.Options{Name: "hub"}, harness.Options{Name: edge})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	planes := base.Planes
	shared.dir, shared.git = base.Dir, base.Git
	if shared.hub, err = install.StartHub(ctx, planes[0], base.Programs); err != nil {
		return 1, err
	}
	if _, err := planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return 1, err
	}
	if shared.edge, err = shared.hub.Join(ctx, planes[1], team, edge); err != nil {
		return 1, errors.Join(err, tailOf("hub", shared.hub.Pod))
	}
	code = m.Run()
	if code != 0 {
		keepLogs(planes)
	}
	return code, auditIsClean(planes)
}

// auditIsClean is the sharpest witness of the suite: convoy's own accounts
// never acted as system:masters and never met a refusal.
func auditIsClean(planes []*harness.Plane) error {
	var problems []error
	for _, plane := range planes {
		ours := harness.AnyOf(
			harness.ByServiceAccountsOf(install.HubNamespace, install.AgentNamespace),
			harness.ByAgent("convoy-hub"), harness.ByAgent("convoy-agent"))
		events, err := harness.AuditAll(plane.AuditLog(), ours,
			harness.AnyOf(harness.Masters(), harness.WithCode(403)))
		if err != nil {
			return err
		}
		for i, event := range events {
			if i == 10 {
				problems = append(problems, fmt.Errorf("%s: and %d more", plane.Name(), len(events)-i))
				break
			}
			problems = append(problems, fmt.Errorf("%s: %s", plane.Name(), event))
		}
		if seen, err := harness.AuditAll(plane.AuditLog(), ours); err != nil || len(seen) == 0 {
			problems = append(problems, fmt.Errorf("%s: no request of convoy's in the audit log (%w)", plane.Name(), err))
		}
	}
	return errors.Join(problems...)
}

// keepLogs leaves the logs of a failed run where a person finds them.
func keepLogs(planes []*harness.Plane) {
	dir := os.Getenv("CONVOY_E2E_LOGS")
	if dir == "" {
		return
	}
	logs := map[string]string{"hub.log": shared.hub.Pod.Log(), "agent.log": shared.edge.Pod.Log()}
	for _, plane := range planes {
		logs[plane.Name()+"-audit.log"] = plane.AuditLog()
	}
	for name, path := range logs {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func tailOf(what string, pod *harness.Pod) error {
	raw, err := os.ReadFile(pod.Log())
	if err != nil {
		return err
	}
	return fmt.Errorf("end of the log of %s:\n%s", what, raw[max(0, len(raw)-4000):])
}

// deadline bounds the waits of one test.
func deadline(t *testing.T) context.Context { return within(t, patience) }

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// app is a repository with one commit and its GitRepository on the hub. Its
// name is the test's; objects of it live in a namespace of that name on the edge.
type app struct {
	name string
	repo *gitserver.Repository
}

// newApp serves files from a new repository of that name, which the hub looks at
// again every few seconds, and makes a namespace of the name on the edge.
func newApp(ctx context.Context, t *testing.T, name string, files map[string]string) *app {
	t.Helper()
	repo, err := shared.git.Repository(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{name: name, repo: repo}
	a.commit(ctx, t, files)
	if err := shared.hub.Source(ctx, shared.git, team, name, metav1.Duration{Duration: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.edge.Plane.Kubectl(ctx, "create", "namespace", name); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *app) commit(ctx context.Context, t *testing.T, files map[string]string) string {
	t.Helper()
	commit, err := a.repo.Commit(ctx, "change", files)
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// release applies a Release of the folder for the shared edge.
func (a *app) release(ctx context.Context, t *testing.T, name, path string, mods ...func(*corev1alpha1.Release)) {
	t.Helper()
	if err := shared.hub.ApplyObjects(ctx, install.Release(team, name, edge, a.name, path, mods...)); err != nil {
		t.Fatal(err)
	}
}

// sync asks for what the source has now.
func (a *app) sync(ctx context.Context, t *testing.T, release string) {
	t.Helper()
	if _, err := shared.hub.Plugin(ctx, "-n", team, "sync", release); err != nil {
		t.Fatal(err)
	}
}

// until waits for a Release to meet cond and returns it.
func until(ctx context.Context, t *testing.T, release string, cond func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	t.Helper()
	var last *corev1alpha1.Release
	_, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.Releases, team, release,
		func(u *unstructured.Unstructured) (bool, error) {
			r, err := harness.As[corev1alpha1.Release](u)
			if err != nil {
				return false, err
			}
			last = r
			return cond(r), nil
		})
	if err != nil {
		t.Fatal(errors.Join(err, tailOf("hub", shared.hub.Pod), tailOf("agent", shared.edge.Pod)))
	}
	return last
}

// ready is a Release that runs the given revision (any, when empty) healthily.
func ready(commit string) func(*corev1alpha1.Release) bool {
	return func(r *corev1alpha1.Release) bool {
		return r.Status.ObservedGeneration == r.Generation && is(r, corev1alpha1.ConditionReady, "True", "") &&
			strings.HasSuffix(r.Status.SourceRevision, commit)
	}
}

// is says whether a condition has the status and, unless empty, the reason.
func is(r *corev1alpha1.Release, condition, status, reason string) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == condition {
			return string(c.Status) == status && (reason == "" || c.Reason == reason)
		}
	}
	return false
}

// message of a condition.
func message(r *corev1alpha1.Release, condition string) string {
	for _, c := range r.Status.Conditions {
		if c.Type == condition {
			return c.Message
		}
	}
	return ""
}

// onEdge waits for an object on the edge.
func onEdge(ctx context.Context, t *testing.T, gvr schema.GroupVersionResource, namespace, name string, cond harness.Condition) *unstructured.Unstructured {
	t.Helper()
	u, err := harness.WaitFor(ctx, shared.edge.Plane.Dynamic(), gvr, namespace, name, cond)
	if err != nil {
		t.Fatal(errors.Join(err, tailOf("agent", shared.edge.Pod)))
	}
	return u
}

// data is a condition on ConfigMaps: the key has the value, or is gone when
// the value is empty.
func data(key, value string) harness.Condition {
	return func(u *unstructured.Unstructured) (bool, error) {
		got, found, err := unstructured.NestedString(u.Object, "data", key)
		return got == value && found == (value != ""), err
	}
}

func exists(*unstructured.Unstructured) (bool, error) { return true, nil }

// edit is somebody else's merge patch of a ConfigMap on the edge.
func edit(ctx context.Context, t *testing.T, namespace, name, patch string) {
	t.Helper()
	_, err := shared.edge.Plane.Dynamic().Resource(configMaps).Namespace(namespace).Patch(
		ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
}

// configMap renders a ConfigMap manifest with alternating keys and values.
func configMap(namespace, name string, pairs ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata:\n", name, namespace)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, "  %s: %q\n", pairs[i], pairs[i+1])
	}
	return b.String()
}
