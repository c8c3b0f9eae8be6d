// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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

const (
	// team is the namespace on the hub, and of the objects on the edge.
	team = "team"
	// patience for one thing to become so, on a busy machine.
	patience = 6 * time.Minute
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is one hub with an etcd of its own beside its host, and one edge.
type world struct {
	programs   install.Programs
	host, edge *harness.Plane
	hub        *install.HubProcess
	etcd       *harness.Process
	agent      *install.DirectAgent
	git        *gitserver.Server
	dir        string
}

var shared world

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	w := &shared
	// No pods, and nothing on the host but its API: what is stopped here is the API.
	bare := []harness.Component{harness.ControllerManager, harness.Scheduler, harness.Kwok}
	base, err := install.NewBase(ctx, "fault", harness.Options{Name: "hub", Without: bare}, harness.Options{Name: "edge", Without: bare})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	w.programs, w.host, w.edge, w.git, w.dir = base.Programs, base.Planes[0], base.Planes[1], base.Git, base.Dir
	if w.hub, err = install.NewHubProcess(ctx, w.host, w.programs, filepath.Join(w.dir, "hub")); err != nil {
		return 1, err
	}
	if w.etcd, w.hub.Etcd, err = install.RunEtcd(ctx, w.host, w.dir); err != nil {
		return 1, err
	}
	w.hub.Flags = []string{"--gateway-drain-timeout=0s"}
	if err := w.hub.Up(ctx); err != nil {
		return 1, err
	}
	for _, plane := range base.Planes {
		if _, err := plane.Kubectl(ctx, "create", "namespace", team); err != nil {
			return 1, err
		}
	}
	if w.agent, err = w.hub.JoinDirect(ctx, w.edge, team, "edge", "convoy-agent"); err != nil {
		return 1, err
	}
	if err := w.agent.Start(ctx); err != nil {
		return 1, err
	}
	if err := w.hub.WaitCluster(ctx, team, "edge"); err != nil {
		return 1, fmt.Errorf("%w: %s", err, install.Tail(w.agent.Log()))
	}
	return m.Run(), nil
}

// app is one Release with objects of its own.
type app struct {
	t          *testing.T
	ctx        context.Context //nolint:containedctx // of the test
	name       string
	repository *gitserver.Repository
	objects    int
}

// newApp makes a Release with ConfigMaps name-0000 and so on, and waits until it is
// Ready.
func newApp(t *testing.T, name string, objects int, limit time.Duration) *app {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	a := &app{t: t, ctx: ctx, name: name, objects: objects}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("hub:\n%s\nagent:\n%s", install.Tail(shared.hub.Log()), install.Tail(shared.agent.Log()))
		}
	})
	var err error
	if a.repository, err = shared.git.Repository(ctx, name); err != nil {
		t.Fatal(err)
	}
	commit := a.commit("1")
	if err := shared.hub.Source(ctx, shared.git, team, name, metav1.Duration{Duration: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := shared.hub.Create(ctx, install.Release(team, name, "edge", name, ".")); err != nil {
		t.Fatal(err)
	}
	a.ready(commit)
	return a
}

// commit changes the value in every object.
func (a *app) commit(value string) string {
	a.t.Helper()
	files := map[string]string{}
	for i := range a.objects {
		name := fmt.Sprintf("%s-%04d", a.name, i)
		files[name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q}\n", name, value)
	}
	commit, err := a.repository.Commit(a.ctx, value, files)
	if err != nil {
		a.t.Fatal(err)
	}
	return commit
}

// sync asks for what the source has, again and again until the hub takes it.
func (a *app) sync() {
	a.t.Helper()
	for {
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1alpha1.AnnotationSyncRequestedAt, time.Now().UTC().Format(time.RFC3339Nano))
		_, err := shared.host.Dynamic().Resource(install.Releases).Namespace(team).Patch(a.ctx, a.name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		if err == nil {
			return
		}
		a.pass(500*time.Millisecond, fmt.Errorf("no sync could be asked for: %w", err))
	}
}

// pass lets time go by; at the end of the test's time it fails with what.
func (a *app) pass(d time.Duration, what error) {
	a.t.Helper()
	select {
	case <-a.ctx.Done():
		a.t.Fatal(errors.Join(context.Cause(a.ctx), what))
	case <-time.After(d):
	}
}

func (a *app) until(cond func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	a.t.Helper()
	var out *corev1alpha1.Release
	_, err := harness.WaitFor(a.ctx, shared.host.Dynamic(), install.Releases, team, a.name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		if err != nil {
			return false, err
		}
		out = r
		return cond(r), nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// ready waits until the Release runs a commit.
func (a *app) ready(commit string) *corev1alpha1.Release {
	a.t.Helper()
	return a.until(func(r *corev1alpha1.Release) bool {
		return strings.HasSuffix(r.Status.SourceRevision, commit) && r.Status.AppliedRef == r.Status.RenderRef && condition(r, corev1alpha1.ConditionReady) == "True"
	})
}

func condition(r *corev1alpha1.Release, typ string) metav1.ConditionStatus {
	for _, c := range r.Status.Conditions {
		if c.Type == typ {
			return c.Status
		}
	}
	return ""
}

// first object on the edge, when its value is this.
func (a *app) first(value string) *unstructured.Unstructured {
	a.t.Helper()
	u, err := harness.WaitFor(a.ctx, shared.edge.Dynamic(), configMaps, team, a.name+"-0000", func(u *unstructured.Unstructured) (bool, error) {
		have, _, err := unstructured.NestedString(u.Object, "data", "k")
		return have == value, err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return u
}

// heals shows that the edge stands alone: an edit is taken back.
func (a *app) heals(value string) {
	a.t.Helper()
	edited, err := shared.edge.Dynamic().Resource(configMaps).Namespace(team).Patch(a.ctx, a.name+"-0000", types.MergePatchType,
		[]byte(`{"data":{"k":"edited"}}`), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		a.t.Fatal(err)
	}
	if healed := a.first(value); healed.GetUID() != edited.GetUID() || healed.GetResourceVersion() == edited.GetResourceVersion() {
		a.t.Errorf("healed to UID %s, resourceVersion %s; edited it was %s, %s", healed.GetUID(), healed.GetResourceVersion(), edited.GetUID(), edited.GetResourceVersion())
	}
}

// sessions that the hub has, by its own metrics.
func sessions(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.hub.MetricsURL(), http.NoBody)
	if err != nil {
		return "", err
	}
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "convoy_gateway_sessions "); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", errors.New("the hub does not count its sessions")
}

// connected says that the agent's session is there.
func (a *app) connected() {
	a.t.Helper()
	if n, err := sessions(a.ctx); err != nil || n != "1" {
		a.t.Errorf("the hub has %s sessions, want the agent's: %v", n, err)
	}
}
