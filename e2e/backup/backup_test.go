// SPDX-License-Identifier: Apache-2.0

// Package backup_test loses a hub with its whole host cluster and brings it back on
// another from a backup; and rotates every key that can be rotated while an agent
// goes on working. Everything is real: two hosts, an edge, the plugin.
package backup_test

import (
	"context"
	"encoding/base64"
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
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	patience = 10 * time.Minute
	team     = "team"
	edge     = "edge-1"
	name     = "shop"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// world is a hub with an edge, and a source.
type world struct {
	hub  *install.Hub
	edge *install.Edge
	git  *gitserver.Server
	repo *gitserver.Repository
	dir  string
}

func TestAHubIsBroughtBackOnAnotherHostAndItsKeysAreRotated(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, spare := start(ctx, t)
	w.commit(ctx, t, "1")
	if err := w.hub.ApplyObjects(ctx, install.Release(team, name, edge, name, "app")); err != nil {
		t.Fatal(err)
	}
	w.onEdge(ctx, t, "1")
	w.until(ctx, t, ready)

	file := filepath.Join(w.dir, "hub.backup")
	w.plugin(ctx, t, "backup", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup's mode: %v, %v; want 0600", info.Mode(), err)
	}
	// The edge goes on after the backup was made.
	w.commit(ctx, t, "2")
	w.plugin(ctx, t, "-n", team, "sync", name)
	before := w.onEdge(ctx, t, "2")
	w.until(ctx, t, ready)

	w.moveTo(ctx, t, spare, file)
	if err := w.hub.WaitCluster(ctx, team, edge); err != nil {
		t.Fatal(w.tails(err))
	}
	w.until(ctx, t, ready)
	if after := w.onEdge(ctx, t, "2"); after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the edge was touched: resourceVersion %s, was %s", after.GetResourceVersion(), before.GetResourceVersion())
	}
	w.commit(ctx, t, "3")
	w.plugin(ctx, t, "-n", team, "sync", name)
	w.onEdge(ctx, t, "3")

	w.rotate(ctx, t)
}

// start builds all that the test stands on.
func start(ctx context.Context, t *testing.T) (*world, *harness.Plane) {
	t.Helper()
	base, err := install.NewBase(ctx, "backup", harness.Options{Name: "hub"}, harness.Options{Name: "hub-2"}, harness.Options{Name: edge})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := base.Close(); err != nil {
			t.Error(err)
		}
	})
	w, planes := &world{git: base.Git, dir: base.Dir}, base.Planes
	if w.repo, err = w.git.Repository(ctx, name); err != nil {
		t.Fatal(err)
	}
	if w.hub, err = install.StartHub(ctx, planes[0], base.Programs); err != nil {
		t.Fatal(err)
	}
	if _, err := planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Source(ctx, w.git, team, name, metav1.Duration{Duration: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if w.edge, err = w.hub.Join(ctx, planes[2], team, edge); err != nil {
		t.Fatal(err)
	}
	if _, err := planes[2].Kubectl(ctx, "create", "namespace", name); err != nil {
		t.Fatal(err)
	}
	return w, planes[1]
}

// moveTo loses the hub with its host, and follows what `kubectl convoy restore
// --help` says on another host.
func (w *world) moveTo(ctx context.Context, t *testing.T, plane *harness.Plane, file string) {
	t.Helper()
	lost := w.hub
	if err := lost.Pod.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lost.Plane.Stop(); err != nil {
		t.Fatal(err)
	}
	hub := *lost
	hub.Plane, hub.Pod = plane, nil
	w.hub = &hub
	// What is the host's own comes back with the host: here, a namespace and the
	// Secret of a source.
	if _, err := plane.Kubectl(ctx, "create", "namespace", team); err != nil {
		t.Fatal(err)
	}
	ca := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": install.GitCA, "namespace": team},
		"stringData": map[string]any{"ca.crt": string(w.git.CA())},
	}
	if err := w.hub.ApplyObjects(ctx, ca); err != nil {
		t.Fatal(err)
	}
	w.plugin(ctx, t, "restore", file, "--keys")
	if err := w.hub.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.WaitServed(ctx); err != nil {
		t.Fatal(w.tails(err))
	}
	w.plugin(ctx, t, "restore", file)
	if out, err := w.hub.Plugin(ctx, "restore", file, "--keys"); err != nil {
		t.Errorf("restoring the same keys once more: %v: %s", err, out)
	}
	w.served(ctx, t)
}

// served waits until the hub, which has just been started again, serves.
func (w *world) served(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := w.hub.WaitReady(ctx); err != nil {
		t.Fatal(w.tails(err))
	}
	if err := w.hub.WaitServed(ctx); err != nil {
		t.Fatal(w.tails(err))
	}
	w.eventually(ctx, t, func() error {
		_, err := w.hub.Plugin(ctx, "keys")
		return err
	})
}

// rotate takes each key through its whole life, with one restart of the hub for all.
func (w *world) rotate(ctx context.Context, t *testing.T) {
	t.Helper()
	sets := []string{"convoy-hub-ca", "convoy-order-key", "convoy-sealing-key"}
	first := w.keys(ctx, t)
	for _, set := range sets {
		w.plugin(ctx, t, "keys", "rotate", set)
		if _, err := w.hub.Plugin(ctx, "keys", "retire", set, first[set][0]); err == nil {
			t.Errorf("%s: the key that the hub runs with could be retired", set)
		}
	}
	w.restart(ctx, t)
	for _, set := range sets {
		w.eventually(ctx, t, func() error {
			_, err := w.hub.Plugin(ctx, "keys", "retire", set, first[set][0])
			return err
		})
	}
	w.restart(ctx, t)
	for set, ids := range w.keys(ctx, t) {
		if len(ids) != 1 {
			t.Errorf("%s has the keys %v, want one", set, ids)
		}
	}
	// The agent knows the new keys alone: also what it kept is verified with them.
	if err := w.edge.Pod.Kill9(ctx); err != nil {
		t.Fatal(err)
	}
	w.edit(ctx, t)
	w.onEdge(ctx, t, "3")
	w.commit(ctx, t, "4")
	w.plugin(ctx, t, "-n", team, "sync", name)
	w.onEdge(ctx, t, "4")
	w.until(ctx, t, ready)
}

// keys lists the IDs of each set, the current one first.
func (w *world) keys(ctx context.Context, t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, line := range strings.Split(w.plugin(ctx, t, "keys"), "\n")[1:] {
		if fields := strings.Fields(line); len(fields) > 1 {
			out[fields[0]] = append(out[fields[0]], fields[1])
		}
	}
	return out
}

func (w *world) restart(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := w.hub.Pod.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Run(ctx); err != nil {
		t.Fatal(err)
	}
	w.served(ctx, t)
}

func (w *world) plugin(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.hub.Plugin(ctx, args...)
	if err != nil {
		t.Fatal(w.tails(err))
	}
	return out
}

// commit writes a ConfigMap and a Secret, so that there is something to seal.
func (w *world) commit(ctx context.Context, t *testing.T, value string) {
	t.Helper()
	_, err := w.repo.Commit(ctx, "change", map[string]string{
		"app/cm.yaml":     fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: %q}\n", name, name, value),
		"app/secret.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {value: %q}\n", name, name, "secret "+value),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) edit(ctx context.Context, t *testing.T) {
	t.Helper()
	patch := `{"data":{"value":"somebody else's"}}`
	if _, err := w.edge.Plane.Kubectl(ctx, "-n", name, "patch", "configmap", name, "--type=merge", "-p", patch); err != nil {
		t.Fatal(err)
	}
}

// onEdge waits until the edge has a value, in both objects.
func (w *world) onEdge(ctx context.Context, t *testing.T, value string) *unstructured.Unstructured {
	t.Helper()
	has := func(want string) harness.Condition {
		return func(u *unstructured.Unstructured) (bool, error) {
			got, _, err := unstructured.NestedString(u.Object, "data", "value")
			return got == want, err
		}
	}
	u, err := harness.WaitFor(ctx, w.edge.Plane.Dynamic(), configMaps, name, name, has(value))
	if err == nil {
		_, err = harness.WaitFor(ctx, w.edge.Plane.Dynamic(), secrets, name, name, has(encoded("secret "+value)))
	}
	if err != nil {
		t.Fatal(w.tails(fmt.Errorf("the edge has no value %q: %w", value, err)))
	}
	return u
}

func (w *world) until(ctx context.Context, t *testing.T, cond func(*corev1alpha1.Release) bool) {
	t.Helper()
	_, err := harness.WaitFor(ctx, w.hub.Plane.Dynamic(), install.Releases, team, name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		return err == nil && cond(r), err
	})
	if err != nil {
		t.Fatal(w.tails(err))
	}
}

func ready(r *corev1alpha1.Release) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == corev1alpha1.ConditionReady {
			return c.Status == metav1.ConditionTrue && r.Status.ObservedGeneration == r.Generation && r.Status.AppliedRef == r.Status.RenderRef
		}
	}
	return false
}

// eventually asks until there is no error.
func (w *world) eventually(ctx context.Context, t *testing.T, ask func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(context.Context) (bool, error) {
		last = ask()
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(w.tails(errors.Join(err, last)))
	}
}

func (w *world) tails(err error) error {
	for what, pod := range map[string]*harness.Pod{"hub": w.hub.Pod, "agent": w.edge.Pod} {
		if pod == nil {
			continue
		}
		if raw, failed := os.ReadFile(pod.Log()); failed == nil {
			err = fmt.Errorf("%w\nend of the log of %s:\n%s", err, what, raw[max(0, len(raw)-3000):])
		}
	}
	return err
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
