// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	team = "team"
	edge = "edge-1"
	// patience for one thing to become so.
	patience = 5 * time.Minute
	// prefix of all that the hub stores.
	prefix = "/registry/convoy.kumodo.io/"
)

// world is one hub without a host, one edge cluster, one Git remote.
type world struct {
	t          *testing.T
	programs   install.Programs
	supervisor *harness.Supervisor
	plane      *harness.Plane
	repository *gitserver.Repository
	git        *gitserver.Server
	dir        string

	api, gateway, metrics, hooks int
	hub, agent                   *harness.Process
	client                       dynamic.Interface
	etcd                         *clientv3.Client
	starts                       int
	more                         []string // arguments of the hub
}

func newWorld(t *testing.T, more ...string) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, dir: t.TempDir(), more: more}
	var err error
	w.programs, err = install.Build(ctx)
	w.must(err)
	w.plane = harness.T(t, harness.Options{Name: "edge", UnsafeNoFsync: true})
	w.supervisor, err = harness.NewSupervisor(ctx, "")
	w.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			w.showLogs()
		}
		if err := w.supervisor.Close(); err != nil {
			t.Errorf("close supervisor: %v", err)
		}
	})
	w.git, err = gitserver.Start(ctx, filepath.Join(w.dir, "git"), "127.0.0.1:0")
	w.must(err)
	t.Cleanup(func() {
		if err := w.git.Close(); err != nil {
			t.Errorf("close git server: %v", err)
		}
	})
	w.repository, err = w.git.Repository(ctx, "apps")
	w.must(err)
	secret := filepath.Join(w.dir, "secrets", team, "git-ca")
	w.must(os.MkdirAll(secret, 0o700))
	w.must(os.WriteFile(filepath.Join(secret, "ca.crt"), w.git.CA(), 0o600))
	for _, port := range []*int{&w.api, &w.gateway, &w.metrics, &w.hooks} {
		*port, err = harness.FreePort(ctx)
		w.must(err)
	}
	w.startHub()
	w.join()
	w.startAgent()
	w.untilObject(install.Clusters, team, edge, connected)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deadline() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) showLogs() {
	for _, process := range []*harness.Process{w.hub, w.agent} {
		if process == nil {
			continue
		}
		text, err := os.ReadFile(process.Log())
		if err != nil {
			w.t.Log(err)
			continue
		}
		w.t.Logf("%s:\n%s", process.Log(), text[max(0, len(text)-8<<10):])
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (w *world) data() string { return filepath.Join(w.dir, "hub") }

func (w *world) startHub() {
	w.t.Helper()
	ctx := w.deadline()
	w.starts++
	var err error
	w.hub, err = w.supervisor.Start(ctx, harness.Program{
		Name: fmt.Sprintf("hub-%d", w.starts), Path: w.programs.Hub,
		Args: append([]string{
			"--standalone", "--data-dir=" + w.data(), "--secure-port=" + strconv.Itoa(w.api), "--gateway-addr=" + loopback(w.gateway),
			"--metrics-addr=" + loopback(w.metrics), "--webhook-addr=" + loopback(w.hooks), "--source-allow-cidr=127.0.0.0/8", "--log-format=json",
			"--standalone-secrets-dir=" + filepath.Join(w.dir, "secrets"), "--resync=10s",
		}, w.more...),
	})
	w.must(err)
	w.must(wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if !w.hub.Running() {
			return false, errors.New("the hub has ended")
		}
		_, err := w.get(ctx, "/readyz")
		return err == nil, nil
	}))
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig())
	w.must(err)
	config.QPS = -1
	w.client, err = dynamic.NewForConfig(config)
	w.must(err)
	w.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{w.socket()}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	w.must(err)
}

func (w *world) kubeconfig() string { return filepath.Join(w.data(), "admin.kubeconfig") }

func (w *world) socket() string { return "unix://" + filepath.Join(w.data(), "etcd", "client.sock") }

func (w *world) stopHub(hard bool) {
	w.t.Helper()
	w.must(w.etcd.Close())
	if hard {
		w.must(w.hub.Kill9(w.deadline()))
		return
	}
	_, err := w.hub.Stop(w.deadline())
	w.must(err)
}

// join makes the Cluster and gives the edge what a person would: the output of
// kubectl convoy join.
func (w *world) join() {
	w.t.Helper()
	ctx := w.deadline()
	command := exec.CommandContext(ctx, w.programs.Plugin, "--kubeconfig", w.kubeconfig(), "-n", team, "join", edge, "--create", "--image", "convoy-agent:dev")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		w.t.Fatalf("join: %v: %s", err, stderr.String())
	}
	_, err = w.plane.KubectlInput(ctx, string(out), "apply", "-f", "-")
	w.must(err)
}

func (w *world) startAgent() {
	w.t.Helper()
	ctx := w.deadline()
	port, err := harness.FreePort(ctx)
	w.must(err)
	w.starts++
	w.agent, err = w.supervisor.Start(ctx, harness.Program{
		Name: fmt.Sprintf("agent-%d", w.starts), Path: w.programs.Agent,
		Args: []string{"--kubeconfig=" + w.plane.Kubeconfig(), "--namespace=convoy-agent", "--metrics-addr=" + loopback(port)},
	})
	w.must(err)
}

func (w *world) untilObject(gvr groupVersionResource, namespace, name string, is harness.Condition) *unstructured.Unstructured {
	w.t.Helper()
	out, err := harness.WaitFor(w.deadline(), w.client, gvr, namespace, name, is)
	w.must(err)
	return out
}

// until waits until a Release is as wanted.
func (w *world) until(name string, is func(*v1alpha1.Release) bool) *v1alpha1.Release {
	w.t.Helper()
	out := w.untilObject(install.Releases, team, name, func(u *unstructured.Unstructured) (bool, error) {
		release, err := harness.As[v1alpha1.Release](u)
		if err != nil {
			return false, err
		}
		return is(release), nil
	})
	release, err := harness.As[v1alpha1.Release](out)
	w.must(err)
	return release
}

// has says whether a condition has a status and, if given, a reason.
func has(release *v1alpha1.Release, kind string, status metav1.ConditionStatus, reason string) bool {
	c := meta.FindStatusCondition(release.Status.Conditions, kind)
	return c != nil && c.Status == status && (reason == "" || c.Reason == reason) && c.ObservedGeneration == release.Generation
}

// readyAt: all is well, with the render of that commit.
func readyAt(commit string) func(*v1alpha1.Release) bool {
	return func(r *v1alpha1.Release) bool {
		return has(r, "Ready", metav1.ConditionTrue, "") && strings.HasSuffix(r.Status.SourceRevision, commit) && r.Status.AppliedRef == r.Status.RenderRef
	}
}

func (w *world) gone(gvr groupVersionResource, name string) {
	w.t.Helper()
	w.must(harness.WaitGone(w.deadline(), w.client, gvr, team, name))
}

// source makes the GitRepository.
func (w *world) source() {
	w.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.convoy.kumodo.io/v1alpha1", "kind": "GitRepository", "metadata": map[string]any{"name": "apps", "namespace": team},
		"spec": map[string]any{"url": w.git.URL("apps"), "interval": "1m", "caSecretRef": map[string]any{"name": "git-ca"}},
	}}
	_, err := w.client.Resource(install.GitRepositories).Namespace(team).Create(w.deadline(), object, metav1.CreateOptions{})
	w.must(err)
	w.untilObject(install.GitRepositories, team, "apps", harness.HasCondition("Ready", metav1.ConditionTrue, ""))
}

// release makes a Release of one path.
func (w *world) release(name, path string, spec map[string]any) {
	w.t.Helper()
	all := map[string]any{
		"clusterRef": map[string]any{"name": edge}, "source": map[string]any{"kind": "GitRepository", "name": "apps"},
		"content": map[string]any{"path": path},
	}
	for key, value := range spec {
		all[key] = value
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.convoy.kumodo.io/v1alpha1", "kind": "Release", "metadata": map[string]any{"name": name, "namespace": team}, "spec": all,
	}}
	_, err := w.client.Resource(install.Releases).Namespace(team).Create(w.deadline(), object, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) patch(name string, change map[string]any) {
	w.t.Helper()
	body, err := json.Marshal(change)
	w.must(err)
	_, err = w.client.Resource(install.Releases).Namespace(team).Patch(w.deadline(), name, types.MergePatchType, body, metav1.PatchOptions{})
	w.must(err)
}

// sync asks for a sync as a person would, and returns what the status will show.
func (w *world) sync(name string, force bool) string {
	w.t.Helper()
	request := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.convoy.kumodo.io/v1alpha1", "kind": "SyncRequest", "metadata": map[string]any{"name": name}, "force": force}}
	out, err := w.client.Resource(install.Releases).Namespace(team).Create(w.deadline(), request, metav1.CreateOptions{}, name, "sync")
	if err != nil {
		// The client asks for a name and then for the subresource of it.
		out, err = w.client.Resource(install.Releases).Namespace(team).Create(w.deadline(), request, metav1.CreateOptions{}, "sync")
	}
	w.must(err)
	answer, err := harness.As[v1alpha1.SyncRequest](out)
	w.must(err)
	return answer.RequestedAt
}

func (w *world) remove(name string) {
	w.t.Helper()
	w.must(w.client.Resource(install.Releases).Namespace(team).Delete(w.deadline(), name, metav1.DeleteOptions{}))
}

// commit pushes the whole tree.
func (w *world) commit(files map[string]string) string {
	w.t.Helper()
	commit, err := w.repository.Commit(w.deadline(), "change", files)
	w.must(err)
	return commit
}

// configMap as YAML.
func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: %q}\n", name, value)
}

// onEdge reads a ConfigMap of the edge; nil when there is none.
func (w *world) onEdge(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	out, err := w.plane.Client().CoreV1().ConfigMaps(team).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // that there is none is an answer
	}
	return out, err
}

// untilEdge waits until a ConfigMap of the edge has that value; "" when it is gone.
func (w *world) untilEdge(name, value string) {
	w.t.Helper()
	w.must(wait.PollUntilContextCancel(w.deadline(), 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		have, err := w.onEdge(ctx, name)
		if err != nil || have == nil {
			return value == "", err
		}
		return have.Data["key"] == value && have.DeletionTimestamp == nil, nil
	}))
}

// written counts the writes of one object since it was made.
func (w *world) written(resource, name string) int64 {
	w.t.Helper()
	answer, err := w.etcd.Get(w.deadline(), prefix+"core.convoy.kumodo.io/"+resource+"/"+team+"/"+name, clientv3.WithKeysOnly())
	w.must(err)
	if len(answer.Kvs) != 1 {
		w.t.Fatalf("%d keys of %s %s", len(answer.Kvs), resource, name)
	}
	return answer.Kvs[0].Version
}

// changes is every key of the hub with the revision of its last change.
func (w *world) changes() map[string]int64 {
	w.t.Helper()
	answer, err := w.etcd.Get(w.deadline(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	w.must(err)
	out := map[string]int64{}
	for _, kv := range answer.Kvs {
		out[string(kv.Key)] = kv.ModRevision
	}
	return out
}

// pass lets time pass in which nothing is to happen.
func (w *world) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.t.Context().Done():
	}
}

// connected: the Cluster has its session.
var connected = harness.HasCondition("Ready", metav1.ConditionTrue, "Connected")

// untilSession waits until the hub has the agent's session.
func (w *world) untilSession() {
	w.t.Helper()
	w.must(wait.PollUntilContextCancel(w.deadline(), 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		text, err := w.get(ctx, "/metrics")
		return strings.Contains(text, "\nconvoy_gateway_sessions 1\n"), err
	}))
}

// get asks the hub's port for metrics and probes; what it says counts only when
// it is fine.
func (w *world) get(ctx context.Context, path string) (text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(w.metrics)+path, http.NoBody)
	if err != nil {
		return "", err
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", path, answer.Status, body)
	}
	return string(body), err
}

// sourceMoved waits until the hub has seen a commit by itself.
func (w *world) sourceMoved(commit string) {
	w.t.Helper()
	body := []byte(`{"spec":{"interval":"5s"}}`)
	_, err := w.client.Resource(install.GitRepositories).Namespace(team).Patch(w.deadline(), "apps", types.MergePatchType, body, metav1.PatchOptions{})
	w.must(err)
	w.untilObject(install.GitRepositories, team, "apps", func(u *unstructured.Unstructured) (bool, error) {
		revision, _, err := unstructured.NestedString(u.Object, "status", "revision")
		return strings.HasSuffix(revision, commit), err
	})
}

// untilNoGraves waits until no last order of a deleted Release is stored.
func (w *world) untilNoGraves() {
	w.t.Helper()
	w.must(wait.PollUntilContextCancel(w.deadline(), 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		answer, err := w.etcd.Get(ctx, prefix+"orders/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return false, err
		}
		return answer.Count == 0, nil
	}))
}
