// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// site is a managed cluster whose agent runs in a network of its own. From there
// it reaches its own API server and what a link leads to, and nothing else.
type site struct {
	t         *testing.T
	hub       *center
	plane     *harness.Plane
	net       *network
	edge      *install.Edge
	namespace string
	name      string
	// manifests as `kubectl convoy join` printed them, and the token in them.
	manifests, token string
}

// exit is how an agent gets out, which the person writes into the Deployment who
// knows the site's network.
type exit struct {
	gateway string
	env     map[string]string
	// outerCA is what --outer-ca-file gets, nothing when empty.
	outerCA []byte
}

// newSite takes an edge and joins it on paper: the Cluster is on the hub, the
// manifests are printed. No agent runs yet.
func newSite(ctx context.Context, t *testing.T, hub *center, name string) *site {
	t.Helper()
	s := &site{t: t, hub: hub, name: name, namespace: "team-" + name, net: shared.network(ctx, t, name)}
	select {
	case s.plane = <-hub.edges:
	default:
		t.Fatal("more sites than edges")
	}
	if _, err := hub.Plane.Kubectl(ctx, "create", "namespace", s.namespace); err != nil {
		t.Fatal(err)
	}
	api := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.plane.Port()))
	own, err := newRelay(ctx, s.net, api, nil, api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.close(); err != nil {
			t.Error(err)
		}
	})
	if s.manifests, err = hub.Plugin(ctx, "-n", s.namespace, "join", name, "--create"); err != nil {
		t.Fatal(err)
	}
	for _, document := range s.documents() {
		secret := corev1.Secret{}
		if err := yaml.Unmarshal([]byte(document), &secret); err == nil && secret.Kind == "Secret" {
			s.token = secret.StringData["token"]
		}
	}
	if s.token == "" {
		t.Fatal("the manifests have no token")
	}
	t.Cleanup(func() {
		if t.Failed() && s.edge != nil {
			t.Log(tailOf("agent of "+name, s.edge.Pod), tailOf("hub "+hub.Plane.Name(), hub.Pod))
		}
	})
	return s
}

// step is a part of the test that the next ones build on. What fails in it fails
// there, and ends the test.
func (s *site) step(name string, f func(t *testing.T)) {
	s.t.Helper()
	whole := s.t
	defer func() { s.t = whole }()
	ok := whole.Run(name, func(t *testing.T) {
		s.t = t
		f(t)
	})
	if !ok {
		whole.FailNow()
	}
}

func (s *site) documents() []string { return strings.Split(s.manifests, "\n---\n") }

// deployment gives the agent's with that way out written into it.
func (s *site) deployment(e exit) *appsv1.Deployment {
	s.t.Helper()
	d := &appsv1.Deployment{}
	for _, document := range s.documents() {
		if err := yaml.Unmarshal([]byte(document), d); err != nil {
			s.t.Fatal(err)
		}
		if d.Kind == "Deployment" {
			break
		}
	}
	pod := &d.Spec.Template.Spec
	c := &pod.Containers[0]
	for _, name := range slices.Sorted(maps.Keys(e.env)) {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: e.env[name]})
	}
	if e.gateway != "" {
		c.Args = append(c.Args, "--gateway-url="+e.gateway)
	}
	if len(e.outerCA) > 0 {
		c.Args = append(c.Args, "--outer-ca-file=/etc/convoy/ca.crt")
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "outer-ca", MountPath: "/etc/convoy", ReadOnly: true})
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "outer-ca", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "outer-ca"}},
		}})
	}
	return d
}

// outerCA makes the ConfigMap that the Deployment mounts.
func (s *site) outerCA(e exit) any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "outer-ca", "namespace": install.AgentNamespace},
		"data":     map[string]any{"ca.crt": string(e.outerCA)},
	}
}

// text is what kubectl reads.
func (s *site) text(objects ...any) string {
	s.t.Helper()
	var b strings.Builder
	for _, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			s.t.Fatal(err)
		}
		b.WriteString("\n---\n" + string(raw))
	}
	return b.String()
}

// install applies the manifests with that way out and runs the agent.
func (s *site) install(ctx context.Context, e exit) {
	s.t.Helper()
	documents := slices.DeleteFunc(s.documents(), func(d string) bool { return strings.Contains(d, "\nkind: Deployment\n") })
	manifests := strings.Join(documents, "\n---\n") + s.text(s.outerCA(e), s.deployment(e))
	var err error
	s.edge, err = install.Agent(ctx, s.plane, shared.programs, manifests, func(edge *install.Edge) {
		edge.Network, edge.Namespace, edge.Name = s.net.path(), s.namespace, s.name
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.edge.Pod.Stop(context.WithoutCancel(ctx)); err != nil {
			s.t.Error(err)
		}
	})
}

// change gives the agent another way out, and returns when the pod that has it
// runs and where its part of the log begins.
func (s *site) change(ctx context.Context, e exit) (logged int64) {
	s.t.Helper()
	// A node of a test forgets a Pod before its process has ended. The token with which
	// an agent gives its Lease back may then be void, so that the next one would wait
	// for a minute: it is taken away here, when nobody is there.
	for _, args := range [][]string{{"scale", "deployment", install.AgentName, "--replicas=0"}, {"delete", "lease", install.AgentName, "--ignore-not-found"}} {
		if _, err := s.plane.Kubectl(ctx, append([]string{"-n", install.AgentNamespace}, args...)...); err != nil {
			s.t.Fatal(err)
		}
		s.poll(ctx, "the agent has ended", func() error {
			if pid := s.edge.Pod.PID(); pid != 0 {
				return fmt.Errorf("it is process %d", pid)
			}
			return nil
		})
	}
	info, err := os.Stat(s.edge.Pod.Log())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.plane.KubectlInput(ctx, s.text(s.outerCA(e), s.deployment(e)), "apply", "-f", "-"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.edge.Pod.WaitRunning(ctx); err != nil {
		s.t.Fatal(err)
	}
	return info.Size()
}

// joined waits until the hub says that the Cluster is Ready.
func (s *site) joined(ctx context.Context) {
	s.t.Helper()
	if err := s.hub.WaitCluster(ctx, s.namespace, s.name); err != nil {
		s.t.Fatal(err)
	}
}

// says waits until the agent's log, from an offset on, has a line with all of
// these.
func (s *site) says(ctx context.Context, from int64, wants ...string) {
	s.t.Helper()
	s.poll(ctx, "the agent's log says "+strings.Join(wants, ", "), func() error {
		text := s.log()[from:]
		for line := range strings.Lines(text) {
			if !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(line, want) }) {
				s.t.Logf("the agent's log says %s", line)
				return nil
			}
		}
		return fmt.Errorf("it says %s", text)
	})
}

func (s *site) log() string {
	s.t.Helper()
	raw, err := os.ReadFile(s.edge.Pod.Log())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// poll tries until it works, for what cannot be watched: logs and metrics.
func (s *site) poll(ctx context.Context, what string, try func() error) {
	s.t.Helper()
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatalf("wait until %s: %v: %v", what, err, last)
	}
}

// metric reads one value from the agent, 0 when it is not there yet.
func (s *site) metric(ctx context.Context, name string) (float64, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: s.net.dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.edge.MetricsURL(), nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, nil
}

const (
	metricSessions  = "convoy_link_sessions_total"
	metricConnected = "convoy_link_connected"
	metricBytes     = "convoy_link_blob_received_bytes_total"
)

// sessions is how many the agent's process has made.
func (s *site) sessions(ctx context.Context) int {
	s.t.Helper()
	n, err := s.metric(ctx, metricSessions)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

// app is a repository, its GitRepository and one Release of it, all of one name.
type app struct {
	*site
	name string
	repo *gitserver.Repository
}

// release makes an app and waits for nothing.
func (s *site) release(ctx context.Context, name string, c content) *app {
	s.t.Helper()
	repo, err := shared.git.Repository(ctx, s.name+"-"+name)
	if err != nil {
		s.t.Fatal(err)
	}
	a := &app{site: s, name: s.name + "-" + name, repo: repo}
	if _, err := s.plane.Kubectl(ctx, "create", "namespace", a.name); err != nil {
		s.t.Fatal(err)
	}
	a.commit(ctx, c)
	if err := s.hub.Source(ctx, shared.git, s.namespace, a.name, metav1.Duration{Duration: time.Hour}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.hub.ApplyObjects(ctx, install.Release(s.namespace, a.name, s.name, a.name, ".")); err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (a *app) commit(ctx context.Context, c content) string {
	a.t.Helper()
	commit, err := a.repo.Commit(ctx, "change", c(a.name))
	if err != nil {
		a.t.Fatal(err)
	}
	return commit
}

// push commits and asks the hub to look.
func (a *app) push(ctx context.Context, c content) string {
	a.t.Helper()
	commit := a.commit(ctx, c)
	if _, err := a.hub.Plugin(ctx, "-n", a.namespace, "sync", a.name); err != nil {
		a.t.Fatal(err)
	}
	return commit
}

// ready waits until the Release runs that commit (any, when empty) healthily.
func (a *app) ready(ctx context.Context, commit string) *corev1alpha1.Release {
	a.t.Helper()
	var last *corev1alpha1.Release
	_, err := harness.WaitFor(ctx, a.hub.Plane.Dynamic(), install.Releases, a.namespace, a.name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		if err != nil {
			return false, err
		}
		last = r
		for _, c := range r.Status.Conditions {
			if c.Type == corev1alpha1.ConditionReady {
				return c.Status == metav1.ConditionTrue && r.Status.ObservedGeneration == r.Generation &&
					strings.HasSuffix(r.Status.SourceRevision, commit), nil
			}
		}
		return false, nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return last
}

// onEdge waits until a ConfigMap of the app has that value.
func (a *app) onEdge(ctx context.Context, name, value string) {
	a.t.Helper()
	_, err := harness.WaitFor(ctx, a.plane.Dynamic(), configMaps, a.name, name, func(u *unstructured.Unstructured) (bool, error) {
		got, _, err := unstructured.NestedString(u.Object, "data", "key")
		return got == value, err
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// edit is somebody else's change of a ConfigMap on the edge.
func (a *app) edit(ctx context.Context, name, value string) {
	a.t.Helper()
	_, err := a.plane.Dynamic().Resource(configMaps).Namespace(a.name).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"key":%q}}`, value), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		a.t.Fatal(err)
	}
}

// content is the files of a repository whose objects lie in that namespace.
type content func(namespace string) map[string]string

// settings is one ConfigMap with one key.
func settings(value string) content {
	return func(namespace string) map[string]string {
		return map[string]string{"settings.yaml": configMap(namespace, "settings", value)}
	}
}

// bulk is count ConfigMaps of size bytes each that cannot be packed much.
func bulk(count, size int) content {
	return func(namespace string) map[string]string {
		files := map[string]string{}
		for i := range count {
			noise := make([]byte, size*3/4)
			rand.Read(noise)
			name := fmt.Sprintf("bulk-%02d", i)
			files[name+".yaml"] = configMap(namespace, name, base64.StdEncoding.EncodeToString(noise))
		}
		return files
	}
}

func configMap(namespace, name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {key: %q}\n", name, namespace, value)
}

func tailOf(what string, pod *harness.Pod) error {
	raw, err := os.ReadFile(pod.Log())
	return errors.Join(err, fmt.Errorf("end of the log of %s:\n%s", what, raw[max(0, len(raw)-4000):]))
}
