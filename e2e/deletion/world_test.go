// SPDX-License-Identifier: Apache-2.0

// Package deletion_test deletes what convoy serves, on real control planes: a host
// with the hub installed from its manifests and two edges whose agents joined. It
// shows what a deletion takes away, what it leaves, what waits and what is held,
// from the API of the host to the objects of an edge.
package deletion_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// patience is how long a test waits for what should take seconds.
	patience = 8 * time.Minute
	// team and away are namespaces of the host; the Clusters edge-1 and edge-2 are in
	// them. What is done to one disturbs nothing in the other.
	team, away   = "team", "away"
	edge1, edge2 = "edge-1", "edge-2"
	// apps is the repository, and on the edges the namespace of its objects.
	apps = "apps"
	// many is how many Releases a mass delete is about.
	many = 60
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is what all tests share.
var world struct {
	hub       *install.Hub
	near, far *install.Edge
	git       *gitserver.Server
}

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	base, err := install.NewBase(ctx, "deletion", harness.Options{Name: "hub"}, harness.Options{Name: edge1}, harness.Options{Name: edge2})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	planes := base.Planes
	world.git = base.Git
	if err := fill(ctx); err != nil {
		return 1, err
	}
	if world.hub, err = install.StartHub(ctx, planes[0], base.Programs); err != nil {
		return 1, err
	}
	var group errgroup.Group
	join := func(edge **install.Edge, plane *harness.Plane, namespace, name string) {
		group.Go(func() (err error) {
			if err := open(ctx, namespace); err != nil {
				return err
			}
			if _, err := plane.Kubectl(ctx, "create", "namespace", apps); err != nil {
				return err
			}
			*edge, err = world.hub.Join(ctx, plane, namespace, name)
			return err
		})
	}
	join(&world.near, planes[1], team, edge1)
	join(&world.far, planes[2], away, edge2)
	if err := group.Wait(); err != nil {
		return 1, errors.Join(err, tailOf("hub", world.hub.Pod))
	}
	return m.Run(), nil
}

// fill makes the repository: a folder with one ConfigMap for each Release.
func fill(ctx context.Context) error {
	repository, err := world.git.Repository(ctx, apps)
	if err != nil {
		return err
	}
	files := map[string]string{}
	names := []string{"plain", "blocked", "anew", "restored", "kept", "going", "leaving"}
	for i := range many {
		names = append(names, massName(i))
	}
	for _, name := range names {
		files[name+"/cm.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {a: \"1\"}\n", name, apps)
	}
	_, err = repository.Commit(ctx, "all", files)
	return err
}

func massName(i int) string { return fmt.Sprintf("mass-%02d", i) }

// open makes a namespace of the host in which Releases find the repository.
func open(ctx context.Context, namespace string, args ...string) error {
	if _, err := world.hub.Plane.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	if len(args) > 0 {
		if _, err := world.hub.Plane.Kubectl(ctx, append([]string{"annotate", "namespace", namespace}, args...)...); err != nil {
			return err
		}
	}
	return world.hub.Source(ctx, world.git, namespace, apps, metav1.Duration{Duration: time.Minute})
}

func tailOf(what string, pod *harness.Pod) error {
	raw, err := os.ReadFile(pod.Log())
	if err != nil {
		return err
	}
	return fmt.Errorf("end of the log of %s:\n%s", what, raw[max(0, len(raw)-4000):])
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func kubectl(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, err := world.hub.Plane.Kubectl(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs kubectl, which must fail, and gives what it says.
func refused(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, err := world.hub.Plane.Kubectl(ctx, args...)
	if err == nil {
		t.Fatalf("kubectl %s succeeded:\n%s", strings.Join(args, " "), out)
	}
	return err.Error()
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// ready makes Releases of the folders of their names and waits until they run.
func ready(ctx context.Context, t *testing.T, namespace, cluster string, names []string, mods ...func(*corev1alpha1.Release)) {
	t.Helper()
	list := make([]*corev1alpha1.Release, 0, len(names))
	for _, name := range names {
		list = append(list, install.Release(namespace, name, cluster, apps, name, mods...))
	}
	if err := world.hub.Create(ctx, list...); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		until(ctx, t, namespace, name, running)
	}
}

// until waits for a Release to meet cond.
func until(ctx context.Context, t *testing.T, namespace, name string, cond func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	t.Helper()
	u, err := harness.WaitFor(ctx, world.hub.Plane.Dynamic(), install.Releases, namespace, name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		return err == nil && cond(r), err
	})
	if err != nil {
		t.Fatal(errors.Join(err, tailOf("hub", world.hub.Pod), tailOf("agent", world.near.Pod)))
	}
	r, err := harness.As[corev1alpha1.Release](u)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func running(r *corev1alpha1.Release) bool {
	return r.Status.ObservedGeneration == r.Generation && has(r.Status.Conditions, "Ready", "True", "")
}

// has says whether a condition has the status and, unless empty, the reason.
func has(list []metav1.Condition, kind, status, reason string) bool {
	for _, c := range list {
		if c.Type == kind {
			return string(c.Status) == status && (reason == "" || c.Reason == reason)
		}
	}
	return false
}

func message(list []metav1.Condition, kind string) string {
	for _, c := range list {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

// untilCluster waits for a Cluster to meet cond.
func untilCluster(ctx context.Context, t *testing.T, namespace, name string, cond func(*corev1alpha1.Cluster) bool) *corev1alpha1.Cluster {
	t.Helper()
	u, err := harness.WaitFor(ctx, world.hub.Plane.Dynamic(), install.Clusters, namespace, name, func(u *unstructured.Unstructured) (bool, error) {
		c, err := harness.As[corev1alpha1.Cluster](u)
		return err == nil && cond(c), err
	})
	if err != nil {
		t.Fatal(errors.Join(err, tailOf("hub", world.hub.Pod)))
	}
	c, err := harness.As[corev1alpha1.Cluster](u)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// get reads a Release as it is now; nil: it is gone.
func get(ctx context.Context, t *testing.T, namespace, name string) *corev1alpha1.Release {
	t.Helper()
	list, err := world.hub.Plane.Dynamic().Resource(install.Releases).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	r, err := harness.As[corev1alpha1.Release](&list.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// object reads the ConfigMap of a Release on an edge.
func object(ctx context.Context, t *testing.T, edge *install.Edge, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := edge.Plane.Dynamic().Resource(configMaps).Namespace(apps).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the workload of %s: %v", name, err)
	}
	return u
}

// objects lists the ConfigMaps on an edge, by name, with their UIDs.
func objects(ctx context.Context, t *testing.T, edge *install.Edge) map[string]string {
	t.Helper()
	list, err := edge.Plane.Dynamic().Resource(configMaps).Namespace(apps).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, u := range list.Items {
		if u.GetDeletionTimestamp() == nil {
			out[u.GetName()] = string(u.GetUID())
		}
	}
	return out
}

// removed waits until the workload of a Release is gone from an edge.
func removed(ctx context.Context, t *testing.T, edge *install.Edge, name string) {
	t.Helper()
	if err := harness.WaitGone(ctx, edge.Plane.Dynamic(), configMaps, apps, name); err != nil {
		t.Fatal(errors.Join(err, tailOf("agent", edge.Pod)))
	}
}

func gone(ctx context.Context, t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	if err := harness.WaitGone(ctx, world.hub.Plane.Dynamic(), resource, namespace, name); err != nil {
		t.Fatal(errors.Join(err, tailOf("hub", world.hub.Pod)))
	}
}

// as is the API of the host for another user.
func as(t *testing.T, user string) dynamic.Interface {
	t.Helper()
	config, err := world.hub.Plane.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// confirm asks, as a user, for a confirmation of what was held.
func confirm(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace, name string, held *corev1alpha1.HeldDeletion) error {
	_, err := client.Resource(resource).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": corev1alpha1.SchemeGroupVersion.String(), "kind": "ConfirmRequest",
		"metadata": map[string]any{"name": name}, "sequence": held.Sequence, "digest": held.Digest,
	}}, metav1.CreateOptions{}, "confirm")
	return err
}

// rejoin makes a token for a Cluster, which is made if it does not exist, and gives
// it to the agent of an edge, which runs on.
func rejoin(ctx context.Context, t *testing.T, edge *install.Edge, namespace, name string) {
	t.Helper()
	manifests, err := world.hub.Plugin(ctx, "-n", namespace, "join", name, "--create")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edge.Plane.KubectlInput(ctx, manifests, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if err := world.hub.WaitCluster(ctx, namespace, name); err != nil {
		t.Fatal(errors.Join(err, tailOf("hub", world.hub.Pod), tailOf("agent", edge.Pod)))
	}
}

// noSession waits until the agent of an edge says that it has no session.
func noSession(ctx context.Context, t *testing.T, edge *install.Edge) {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, edge.MetricsURL(), http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		text, err := io.ReadAll(response.Body)
		return strings.Contains(string(text), "\nconvoy_link_connected 0\n"), errors.Join(err, response.Body.Close())
	})
	if err != nil {
		t.Fatalf("the agent still has a session: %v", err)
	}
}
