// SPDX-License-Identifier: Apache-2.0

// Package edge_test drives what can go wrong around an agent: two of them at once,
// an identity that was revoked, a token of another Cluster, a network that leads
// nowhere. It looks at the far end of the step deliver of the flow source -> render
// -> store -> deliver -> apply -> observe -> report, on real control planes with
// real agents. One hub and one edge serve all tests; each has its own Cluster and
// its own namespace for its agent, and all run at the same time.
package edge_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// patience for what should take seconds, or a back-off; no test is about speed.
	patience = 10 * time.Minute
	team     = "team"
	apps     = "apps"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

	hub  *install.Hub
	edge *harness.Plane
)

// folders of the repository: one for each test, with one ConfigMap.
var folders = []string{"pair", "revoked", "moved", "ahead", "behind", "jumps", "early", "late"}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	programs, err := install.Build(ctx)
	if err != nil {
		return 1, err
	}
	planes, err := harness.StartAll(ctx,
		harness.Options{Name: "hub", UnsafeNoFsync: true},
		harness.Options{Name: "edge", UnsafeNoFsync: true, Without: []harness.Component{harness.Scheduler, harness.Kwok}})
	if err != nil {
		return 1, err
	}
	defer func() {
		for _, plane := range planes {
			err = errors.Join(err, plane.Stop())
		}
	}()
	edge = planes[1]
	dir, err := os.MkdirTemp("", "convoy-edge-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	git, err := gitserver.Start(ctx, filepath.Join(dir, "git"), "127.0.0.1:0")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, git.Close()) }()
	if hub, err = install.StartHub(ctx, planes[0], programs); err != nil {
		return 1, err
	}
	if err := prepare(ctx, git); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func prepare(ctx context.Context, git *gitserver.Server) error {
	if _, err := hub.Plane.Kubectl(ctx, "create", "namespace", team); err != nil {
		return err
	}
	repository, err := git.Repository(ctx, apps)
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, folder := range folders {
		files[folder+"/cm.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\ndata: {key: ours}\n", folder)
		if _, err := edge.Kubectl(ctx, "create", "namespace", folder); err != nil {
			return err
		}
	}
	if _, err := repository.Commit(ctx, "all", files); err != nil {
		return err
	}
	return hub.Source(ctx, git, team, apps, metav1.Duration{Duration: time.Minute})
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// agent is one process of an agent.
type agent struct {
	*harness.Process
	port int
}

// start runs an agent as the pod of that name would.
func start(ctx context.Context, t *testing.T, kubeconfig, namespace, pod string, args ...string) *agent {
	t.Helper()
	port, err := harness.FreePort(ctx)
	must(t, err)
	process, err := edge.Run(ctx, harness.Program{
		Name: namespace + "-" + pod, Path: hub.Programs.Agent, Env: append(os.Environ(), "POD_NAME="+pod),
		Args: append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + namespace, "--metrics-addr=" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, args...),
	})
	must(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		raw, err := os.ReadFile(process.Log())
		t.Logf("end of the log of %s-%s (%v):\n%s", namespace, pod, err, raw[max(0, len(raw)-6000):])
	})
	return &agent{Process: process, port: port}
}

// get asks the agent's port for metrics and probes.
func (a *agent) get(ctx context.Context, path string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(a.port))+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	return answer.StatusCode, string(raw), err
}

// shows waits until the metrics of the agent have that line.
func (a *agent) shows(ctx context.Context, t *testing.T, line string) {
	t.Helper()
	poll(ctx, t, line, func(ctx context.Context) bool {
		_, text, err := a.get(ctx, "/metrics")
		return err == nil && strings.Contains("\n"+text, "\n"+line+"\n")
	})
}

// says waits until the agent's log has a line with all of that, and returns it.
func (a *agent) says(ctx context.Context, t *testing.T, parts ...string) string {
	t.Helper()
	found := ""
	poll(ctx, t, strings.Join(parts, ", "), func(context.Context) bool {
		file, err := os.Open(a.Log())
		if err != nil {
			return false
		}
		defer file.Close()
	lines:
		for lines := bufio.NewScanner(file); lines.Scan(); {
			for _, part := range parts {
				if !strings.Contains(lines.Text(), part) {
					continue lines
				}
			}
			found = lines.Text()
			return true
		}
		return false
	})
	return found
}

func poll(ctx context.Context, t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) { return ok(ctx), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

var tokenForm = regexp.MustCompile(`convoy-join\.[A-Za-z0-9_-]+`)

// join makes a Cluster, if need be, and a token for it. It returns manifests and token.
func join(ctx context.Context, t *testing.T, cluster string) (manifests, token string) {
	t.Helper()
	manifests, err := hub.Plugin(ctx, "-n", team, "join", cluster, "--create")
	must(t, err)
	token = tokenForm.FindString(manifests)
	if token == "" {
		t.Fatal("no token in the manifests")
	}
	return manifests, token
}

// give puts a token where the agent of a namespace finds it.
func give(ctx context.Context, t *testing.T, namespace, token string) {
	t.Helper()
	_, err := edge.KubectlInput(ctx, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: convoy-join, namespace: %s}\nstringData: {token: %s}\n", namespace, token), "apply", "-f", "-")
	must(t, err)
}

// site is a namespace for an agent of its own, that joined as the Cluster of the
// same name and carries out a Release of the same name.
func site(ctx context.Context, t *testing.T, name string) *agent {
	t.Helper()
	_, token := join(ctx, t, name)
	_, err := edge.Kubectl(ctx, "create", "namespace", "agent-"+name)
	must(t, err)
	give(ctx, t, "agent-"+name, token)
	a := start(ctx, t, edge.Kubeconfig(), "agent-"+name, "one")
	deploy(ctx, t, name)
	return a
}

// deploy a folder to the Cluster of the same name.
func deploy(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	must(t, hub.WaitCluster(ctx, team, name))
	must(t, hub.ApplyObjects(ctx, install.Release(team, name, name, apps, name)))
	_, err := harness.WaitFor(ctx, hub.Plane.Dynamic(), install.Releases, team, name, harness.HasCondition("Ready", metav1.ConditionTrue, ""))
	must(t, err)
}

// drift edits the ConfigMap of a folder and waits until it is as it was.
func drift(ctx context.Context, t *testing.T, folder string) {
	t.Helper()
	maps := edge.Dynamic().Resource(configMaps).Namespace(folder)
	_, err := maps.Patch(ctx, "settings", types.MergePatchType, []byte(`{"data":{"key":"theirs"}}`), metav1.PatchOptions{FieldManager: "someone"})
	must(t, err)
	_, err = harness.WaitFor(ctx, edge.Dynamic(), configMaps, folder, "settings", func(u *unstructured.Unstructured) (bool, error) {
		value, _, err := unstructured.NestedString(u.Object, "data", "key")
		return value == "ours", err
	})
	must(t, err)
}

// cluster waits until a Cluster is as wanted.
func cluster(ctx context.Context, t *testing.T, name string, is func(*corev1alpha1.Cluster) bool) {
	t.Helper()
	_, err := harness.WaitFor(ctx, hub.Plane.Dynamic(), install.Clusters, team, name, func(u *unstructured.Unstructured) (bool, error) {
		c, err := harness.As[corev1alpha1.Cluster](u)
		return err == nil && is(c), err
	})
	must(t, err)
}
