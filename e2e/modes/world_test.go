// SPDX-License-Identifier: Apache-2.0

package modes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// team is the namespace of the suite on the hub.
	team = "team-modes"
	// patience of one test.
	patience = 6 * time.Minute
	// userAgent of the engines in the hub.
	userAgent = "convoy-hub-engine"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// shared by all tests: the hub, which is a target too, and two bare edges that have
// no agent. The second is stopped and started by the one test that uses it.
var shared struct {
	hub         *install.Hub
	edge, fails *harness.Plane
	git         *gitserver.Server
}

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
	bare := []harness.Component{harness.ControllerManager, harness.Scheduler, harness.Kwok}
	planes, err := harness.StartAll(ctx,
		harness.Options{Name: "hub", UnsafeNoFsync: true},
		harness.Options{Name: "edge", UnsafeNoFsync: true, Without: bare},
		harness.Options{Name: "fails", UnsafeNoFsync: true, Without: bare})
	if err != nil {
		return 1, err
	}
	defer func() {
		for _, plane := range planes {
			err = errors.Join(err, plane.Stop())
		}
	}()
	shared.edge, shared.fails = planes[1], planes[2]
	dir, err := os.MkdirTemp("", "convoy-modes-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if shared.git, err = gitserver.Start(ctx, filepath.Join(dir, "git"), "127.0.0.1:0"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.git.Close()) }()
	if shared.hub, err = install.StartHub(ctx, planes[0], programs); err != nil {
		return 1, err
	}
	if _, err := planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, tailOf(shared.hub.Pod))
		if keep := os.Getenv("CONVOY_E2E_LOGS"); keep != "" {
			if raw, err := os.ReadFile(shared.hub.Pod.Log()); err == nil {
				err = os.WriteFile(filepath.Join(keep, "modes-hub.log"), raw, 0o600)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		}
	}
	return code, err
}

func tailOf(pod *harness.Pod) string {
	raw, err := os.ReadFile(pod.Log())
	if err != nil {
		return err.Error()
	}
	return "end of the log of the hub:\n" + string(raw[max(0, len(raw)-6000):])
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// place is a Cluster of the hub and the plane that it stands for.
type place struct {
	name  string
	plane *harness.Plane
}

// account makes a ServiceAccount on a plane that may do all there, and gives a
// kubeconfig with a token of it. The token ends when the Secret that it is bound to
// is deleted.
func account(ctx context.Context, t *testing.T, plane *harness.Plane, name string) (kubeconfig []byte, revoke func()) {
	t.Helper()
	client := plane.Client()
	const ns = "kube-system"
	check := func(err error) {
		t.Helper()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	_, err := client.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: ns}},
	}, metav1.CreateOptions{})
	check(err)
	bound, err := client.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(err)
	token, err := client.CoreV1().ServiceAccounts(ns).CreateToken(ctx, name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: name, UID: bound.UID},
	}}, metav1.CreateOptions{})
	check(err)
	return withToken(t, plane, token.Status.Token), func() {
		t.Helper()
		check(client.CoreV1().Secrets(ns).Delete(ctx, name, metav1.DeleteOptions{}))
	}
}

func withToken(t *testing.T, plane *harness.Plane, token string) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: plane.URL(), CertificateAuthorityData: plane.CA()}
	config.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "hub"}
	config.CurrentContext = "it"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// secret puts a kubeconfig into a Secret of the hub's namespace.
func secret(ctx context.Context, t *testing.T, name string, kubeconfig []byte) {
	t.Helper()
	err := shared.hub.ApplyObjects(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": team},
		"stringData": map[string]any{"kubeconfig": string(kubeconfig)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func cluster(name string, mods ...func(*corev1alpha1.Cluster)) *corev1alpha1.Cluster {
	c := &corev1alpha1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1alpha1.SchemeGroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: team},
		Spec: corev1alpha1.ClusterSpec{ConnectionMode: corev1alpha1.ConnectionModeAgentless, Agentless: &corev1alpha1.AgentlessConnection{
			Auth: corev1alpha1.ClusterAuth{Type: corev1alpha1.AuthTypeKubeconfig, Kubeconfig: &corev1alpha1.KubeconfigAuth{
				SecretRef: corev1alpha1.SecretKeyReference{Name: name, Key: "kubeconfig"},
			}},
		}},
	}
	for _, mod := range mods {
		mod(c)
	}
	return c
}

func inCluster(c *corev1alpha1.Cluster) {
	c.Spec = corev1alpha1.ClusterSpec{ConnectionMode: corev1alpha1.ConnectionModeInCluster}
}

func apply(ctx context.Context, t *testing.T, objects ...any) {
	t.Helper()
	if err := shared.hub.ApplyObjects(ctx, objects...); err != nil {
		t.Fatal(err)
	}
}

// agentless makes a Cluster for a plane and waits until it is Ready.
func agentless(ctx context.Context, t *testing.T, name string, plane *harness.Plane) (place, func()) {
	t.Helper()
	kubeconfig, revoke := account(ctx, t, plane, name)
	secret(ctx, t, name, kubeconfig)
	apply(ctx, t, cluster(name))
	waitCluster(ctx, t, name, "True", corev1alpha1.ReasonConnected, "")
	return place{name, plane}, revoke
}

func remove(ctx context.Context, t *testing.T, gvr schema.GroupVersionResource, name string) {
	t.Helper()
	if err := shared.hub.Plane.Dynamic().Resource(gvr).Namespace(team).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitGone(ctx, shared.hub.Plane.Dynamic(), gvr, team, name); err != nil {
		t.Fatal(err)
	}
}

// waitCluster waits for a Cluster's Ready condition and gives the Cluster.
func waitCluster(ctx context.Context, t *testing.T, name, status, reason, says string) *corev1alpha1.Cluster {
	t.Helper()
	var last *corev1alpha1.Cluster
	_, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.Clusters, team, name, func(u *unstructured.Unstructured) (bool, error) {
		c, err := harness.As[corev1alpha1.Cluster](u)
		if err != nil {
			return false, err
		}
		last = c
		ok, message := condition(c.Status.Conditions, corev1alpha1.ConditionReady, status, reason)
		return ok && strings.Contains(message, says), nil
	})
	if err != nil {
		t.Fatalf("Cluster %s is never Ready=%s %s %q: %v", name, status, reason, says, err)
	}
	return last
}

func condition(list []metav1.Condition, kind, status, reason string) (ok bool, message string) {
	for _, c := range list {
		if c.Type == kind {
			return string(c.Status) == status && (reason == "" || c.Reason == reason), c.Message
		}
	}
	return false, ""
}

// app is a repository with a commit, and its GitRepository on the hub.
type app struct {
	name string
	repo *gitserver.Repository
}

func newApp(ctx context.Context, t *testing.T, name string, pairs ...string) *app {
	t.Helper()
	repo, err := shared.git.Repository(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{name: name, repo: repo}
	a.commit(ctx, t, pairs...)
	if err := shared.hub.Source(ctx, shared.git, team, name, metav1.Duration{Duration: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	return a
}

// commit makes the app a ConfigMap "settings" in a namespace of its name.
func (a *app) commit(ctx context.Context, t *testing.T, pairs ...string) string {
	t.Helper()
	data := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		data[pairs[i]] = pairs[i+1]
	}
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %[1]s}\ndata: %[2]s\n", a.name, raw)
	commit, err := a.repo.Commit(ctx, "change", map[string]string{"app/all.yaml": content})
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// to makes the app's namespace at a place, and applies a Release of the app for it.
func (a *app) to(ctx context.Context, t *testing.T, at place) {
	t.Helper()
	if _, err := at.plane.Kubectl(ctx, "create", "namespace", a.name); err != nil {
		t.Fatal(err)
	}
	apply(ctx, t, install.Release(team, a.name, at.name, a.name, "app"))
}

func (a *app) sync(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := shared.hub.Plugin(ctx, "-n", team, "sync", a.name); err != nil {
		t.Fatal(err)
	}
}

// until waits for the app's Release.
func (a *app) until(ctx context.Context, t *testing.T, what string, want func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	t.Helper()
	var last *corev1alpha1.Release
	_, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.Releases, team, a.name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		if err != nil {
			return false, err
		}
		last = r
		return want(r), nil
	})
	if err != nil {
		t.Fatalf("Release %s is never %s: %v", a.name, what, err)
	}
	return last
}

func (a *app) ready(ctx context.Context, t *testing.T, commit string) *corev1alpha1.Release {
	t.Helper()
	return a.until(ctx, t, "Ready", func(r *corev1alpha1.Release) bool {
		ok, _ := condition(r.Status.Conditions, corev1alpha1.ConditionReady, "True", "")
		return ok && r.Status.ObservedGeneration == r.Generation && strings.HasSuffix(r.Status.SourceRevision, commit)
	})
}

// live waits until the app's ConfigMap has a value.
func (a *app) live(ctx context.Context, t *testing.T, plane *harness.Plane, key, value string) *unstructured.Unstructured {
	t.Helper()
	got, err := harness.WaitFor(ctx, plane.Dynamic(), configMaps, a.name, "settings", func(u *unstructured.Unstructured) (bool, error) {
		got, _, err := unstructured.NestedString(u.Object, "data", key)
		return got == value, err
	})
	if err != nil {
		t.Fatalf("%s has never %s=%s: %v", a.name, key, value, err)
	}
	return got
}

// edit changes the app's ConfigMap as somebody else.
func (a *app) edit(ctx context.Context, t *testing.T, plane *harness.Plane, key, value string) {
	t.Helper()
	_, err := plane.Dynamic().Resource(configMaps).Namespace(a.name).Patch(ctx, "settings", types.MergePatchType,
		fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
}
