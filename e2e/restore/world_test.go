// SPDX-License-Identifier: Apache-2.0

// Package restore_test loses what a hub knows, a part at a time, and looks at what
// becomes of it and of the workloads: the whole flow, source to report, on real
// control planes, with the hub as its manifest runs it and two edges whose agents
// joined with a token.
package restore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// patience is how long a test waits for what should take seconds: the machine may
	// be busy, and no test is about speed.
	patience = 8 * time.Minute
	setup    = 15 * time.Minute
	team     = "team"
	source   = "apps"
	edge1    = "edge-1"
	edge2    = "edge-2"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// Shared by all tests.
var (
	hub   *install.Hub
	edges = map[string]*install.Edge{}
	repo  *gitserver.Repository
	git   *gitserver.Server
)

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	base, err := install.NewBase(ctx, "restore", harness.Options{Name: "hub"}, harness.Options{Name: edge1}, harness.Options{Name: edge2})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	planes := base.Planes
	git = base.Git
	if repo, err = git.Repository(ctx, source); err != nil {
		return 1, err
	}
	if err := commit(ctx); err != nil {
		return 1, err
	}
	if hub, err = install.StartHub(ctx, planes[0], base.Programs); err != nil {
		return 1, err
	}
	if _, err := planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return 1, err
	}
	if err := describeSource(ctx); err != nil {
		return 1, err
	}
	for i, name := range []string{edge1, edge2} {
		if edges[name], err = hub.Join(ctx, planes[i+1], team, name); err != nil {
			return 1, err
		}
		for _, namespace := range []string{"t-ha-03", "shared", "many"} {
			if _, err := planes[i+1].Kubectl(ctx, "create", "namespace", namespace); err != nil {
				return 1, err
			}
		}
	}
	return m.Run(), nil
}

const many = 200

// commit makes the source: a folder for each Release.
func commit(ctx context.Context) error {
	claim := "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: t-ha-03}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	files := map[string]string{
		"v1/app.yaml":        configMap("t-ha-03", "app", "1"),
		"v2/app.yaml":        configMap("t-ha-03", "app", "2") + claim,
		"v3/app.yaml":        configMap("t-ha-03", "app", "3"),
		"second/second.yaml": configMap("t-ha-03", "second", "1"),
		"shared/shared.yaml": configMap("shared", "shared", "1"),
		"next/shared.yaml":   configMap("shared", "shared", "2"),
	}
	for i := range many {
		files[fmt.Sprintf("many/%03d/one.yaml", i)] = configMap("many", fmt.Sprintf("one-%03d", i), "1")
	}
	_, err := repo.Commit(ctx, "all", files)
	return err
}

func configMap(namespace, name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {v: %q}\n", name, namespace, value)
}

func describeSource(ctx context.Context) error {
	return hub.Source(ctx, git, team, source, metav1.Duration{Duration: time.Minute})
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// must ends a test over an error, with what hub and agents said last after it.
func must(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	t.Error(err)
	for what, pod := range map[string]*harness.Pod{"hub": hub.Pod, edge1: edges[edge1].Pod, edge2: edges[edge2].Pod} {
		if raw, readErr := os.ReadFile(pod.Log()); readErr == nil {
			t.Logf("end of the log of %s:\n%s", what, raw[max(0, len(raw)-6000):])
		}
	}
	t.FailNow()
}

// dataDir is the hub's volume.
func dataDir() string {
	return filepath.Join(filepath.Dir(hub.Plane.Dir()), "claims", install.HubNamespace, "convoy-hub", "hub")
}

// away does something while the hub is down.
func away(ctx context.Context, t *testing.T, do func()) {
	t.Helper()
	must(t, hub.Pod.Stop(ctx))
	do()
	must(t, hub.Run(ctx))
	must(t, hub.WaitReady(ctx))
	must(t, hub.WaitServed(ctx))
}

// lose deletes a part of the hub's volume.
func lose(t *testing.T, part string) {
	t.Helper()
	path := filepath.Join(dataDir(), part)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(path))
}

// replace copies a folder over another, with owners and modes.
func replace(ctx context.Context, t *testing.T, from, to string) {
	t.Helper()
	must(t, os.RemoveAll(to))
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func release(name, cluster, path string) *corev1alpha1.Release {
	return install.Release(team, name, cluster, source, path)
}

func apply(ctx context.Context, t *testing.T, objects ...any) {
	t.Helper()
	must(t, hub.ApplyObjects(ctx, objects...))
}

// until waits for a Release.
func until(ctx context.Context, t *testing.T, name string, is func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	t.Helper()
	var last *corev1alpha1.Release
	_, err := harness.WaitFor(ctx, hub.Plane.Dynamic(), install.Releases, team, name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		last = r
		return err == nil && is(r), err
	})
	must(t, err)
	return last
}

func has(r *corev1alpha1.Release, kind, status, reason string) bool {
	c := meta.FindStatusCondition(r.Status.Conditions, kind)
	return c != nil && string(c.Status) == status && (reason == "" || c.Reason == reason)
}

func ready(r *corev1alpha1.Release) bool {
	return r.Status.ObservedGeneration == r.Generation && r.Status.AppliedRef == r.Status.RenderRef && has(r, "Ready", "True", "")
}

// untilCluster waits for a Cluster.
func untilCluster(ctx context.Context, t *testing.T, name string, is func(*corev1alpha1.Cluster) bool) *corev1alpha1.Cluster {
	t.Helper()
	var last *corev1alpha1.Cluster
	_, err := harness.WaitFor(ctx, hub.Plane.Dynamic(), install.Clusters, team, name, func(u *unstructured.Unstructured) (bool, error) {
		c, err := harness.As[corev1alpha1.Cluster](u)
		last = c
		return err == nil && is(c), err
	})
	must(t, err)
	return last
}

func behind(c *corev1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, corev1alpha1.ConditionHubBehind)
}

// onEdge waits for an object of an edge.
func onEdge(ctx context.Context, t *testing.T, edge string, gvr schema.GroupVersionResource, namespace, name string, is harness.Condition) *unstructured.Unstructured {
	t.Helper()
	u, err := harness.WaitFor(ctx, edges[edge].Plane.Dynamic(), gvr, namespace, name, is)
	must(t, err)
	return u
}

func exists(*unstructured.Unstructured) (bool, error) { return true, nil }

func value(want string) harness.Condition {
	return func(u *unstructured.Unstructured) (bool, error) {
		got, _, err := unstructured.NestedString(u.Object, "data", "v")
		return got == want, err
	}
}

// same compares an object with what it was before: UID, and resource version where
// nothing may have been written.
func same(t *testing.T, before, after *unstructured.Unstructured, untouched bool) {
	t.Helper()
	if before.GetUID() != after.GetUID() || untouched && before.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("%s %s: UID %s and version %s, was %s and %s", after.GetKind(), after.GetName(),
			after.GetUID(), after.GetResourceVersion(), before.GetUID(), before.GetResourceVersion())
	}
}

// sum adds up the samples of a metric whose lines contain all of some words.
func sum(ctx context.Context, t *testing.T, url, metric string, words ...string) float64 {
	t.Helper()
	var raw []byte
	eventually(ctx, t, "metrics are served", func() bool {
		var err error
		raw, err = get(ctx, url)
		return err == nil
	})
	total := 0.0
line:
	for line := range strings.Lines(string(raw)) {
		name, number, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name != metric && !strings.HasPrefix(name, metric+"{") {
			continue
		}
		for _, word := range words {
			if !strings.Contains(name, word) {
				continue line
			}
		}
		sample, err := strconv.ParseFloat(number, 64)
		must(t, err)
		total += sample
	}
	return total
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(answer.Body)
	return raw, errors.Join(err, answer.Body.Close())
}

// eventually waits until something is so.
func eventually(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		must(t, fmt.Errorf("%s: %w", what, err))
	}
}

// sessions waits until so many agents have one.
func sessions(ctx context.Context, t *testing.T, want float64) {
	t.Helper()
	eventually(ctx, t, "sessions", func() bool { return sum(ctx, t, hub.MetricsURL(), "convoy_gateway_sessions") == want })
}

// changesOn are the writes of an edge's agent to objects that it applies, since a
// time.
func changesOn(t *testing.T, edge string, since time.Time) []harness.Event {
	t.Helper()
	events, err := harness.AuditAll(edges[edge].Plane.AuditLog(), harness.ByServiceAccountsOf(install.AgentNamespace), harness.Since(since),
		harness.AnyOf(harness.WithVerb("patch"), harness.WithVerb("update"), harness.WithVerb("create"), harness.WithVerb("delete")))
	must(t, err)
	var out []harness.Event
	for _, event := range events {
		if event.Object.Namespace != install.AgentNamespace && event.Object.Namespace != "" {
			out = append(out, event)
		}
	}
	return out
}

func join(ctx context.Context, t *testing.T, name string, flags ...string) {
	t.Helper()
	manifests, err := hub.Plugin(ctx, append([]string{"-n", team, "join", name}, flags...)...)
	must(t, err)
	_, err = edges[name].Plane.KubectlInput(ctx, manifests, "apply", "-f", "-")
	must(t, err)
}

// forget deletes what an agent keeps, but for who it is.
func forget(ctx context.Context, edge string) error {
	secrets := edges[edge].Plane.Client().CoreV1().Secrets(install.AgentNamespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "convoy.kumodo.io/state"})
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	for _, secret := range list.Items {
		if secret.Name == "convoy-agent-identity" {
			continue
		}
		if err := secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("forget: %w", err)
		}
	}
	return nil
}
