// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// team is the namespace of the suite on the hub.
	team = "team-preview"
	// edge is a Cluster whose agent never came: previews need none.
	edge = "edge"
	// secret is a value that nobody may be shown.
	secret = "correct-horse-battery"
	// patience of one test.
	patience = 6 * time.Minute
)

// shared by all tests.
var shared struct {
	*install.Base
	hub  *install.Hub
	repo *gitserver.Repository
	// old is the commit before main's.
	old string
}

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

// source is what the repository has.
var source = map[string]string{
	"deploy/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: red}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: " + secret + "}\n",
	"other/app.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
	"broken/app.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: ConfigMap\nmetadata: {name: b}\n",
	"chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.2.3\n",
	"chart/templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-app}\ndata:\n  color: {{ .Values.color | default \"none\" }}\n" +
		"  url: {{ printf \"postgres://shop:%s@db\" .Values.password }}\n  coded: {{ .Values.password | b64enc }}\n",
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if shared.Base, err = install.NewBase(ctx, "preview", harness.Options{Name: "hub"}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	if shared.hub, err = install.StartHub(ctx, shared.Planes[0], shared.Programs); err != nil {
		return 1, err
	}
	if _, err := shared.Planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return 1, err
	}
	if shared.repo, err = shared.Git.Repository(ctx, "shop"); err != nil {
		return 1, err
	}
	before := map[string]string{"deploy/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: grey}\n"}
	if shared.old, err = shared.repo.Commit(ctx, "first", before); err != nil {
		return 1, err
	}
	if _, err := shared.repo.Commit(ctx, "second", source); err != nil {
		return 1, err
	}
	if err := shared.hub.Source(ctx, shared.Git, team, "shop", metav1.Duration{Duration: time.Minute}); err != nil {
		return 1, err
	}
	err = shared.hub.ApplyObjects(ctx,
		&corev1alpha1.Cluster{
			TypeMeta: metav1.TypeMeta{APIVersion: corev1alpha1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: edge, Namespace: team},
			Spec: corev1alpha1.ClusterSpec{Metadata: map[string]string{"region": "eu"}},
		},
		map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db", "namespace": team}, "stringData": map[string]any{"values.yaml": "password: " + secret + "\n"}},
		install.Release(team, "shop", edge, "shop", "deploy"),
		install.Release(team, "chart", edge, "shop", "chart", chart),
	)
	if err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, "end of the log of the hub:\n"+install.Tail(shared.hub.Pod.Log()))
	}
	return code, nil
}

// chart takes values out of a Secret and is mutated for the cluster.
func chart(r *corev1alpha1.Release) {
	r.Spec.Content.Helm = &corev1alpha1.HelmContent{ValuesFrom: []corev1alpha1.ValuesReference{{Kind: corev1alpha1.ReferenceSecret, Name: "db"}}}
	r.Spec.Mutations = []corev1alpha1.Mutation{{
		Type: corev1alpha1.MutationMergePatch, If: `cluster.region == "eu"`, Inline: []string{`{"data": {"currency": "EUR"}}`},
	}}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// answer of the plugin.
type answer struct {
	out, problems string
	code          int
}

// plugin runs kubectl convoy as somebody.
func plugin(t *testing.T, kubeconfig string, args ...string) answer {
	t.Helper()
	ctx := deadline(t)
	command := exec.CommandContext(ctx, shared.Programs.Plugin, append([]string{"--kubeconfig", kubeconfig, "-n", team}, args...)...)
	command.Env = shared.hub.Plane.Env(filepath.Dir(shared.Programs.Plugin))
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	got := answer{out: out.String(), problems: problems.String(), code: command.ProcessState.ExitCode()}
	if strings.Contains(got.out+got.problems, secret) || strings.Contains(got.out, "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5") {
		t.Errorf("a Secret's value is told by kubectl convoy %s: %s%s", strings.Join(args, " "), got.out, got.problems)
	}
	return got
}

// admin runs it as the administrator of the plane.
func admin(t *testing.T, args ...string) answer {
	t.Helper()
	return plugin(t, shared.hub.Plane.Kubeconfig(), args...)
}

// file of a Release.
func file(t *testing.T, release *corev1alpha1.Release) string {
	t.Helper()
	text, err := yaml.Marshal(release)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "release.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// user has a ClusterRole in the suite's namespace.
func user(ctx context.Context, t *testing.T, name, role string) (kubeconfig string) {
	t.Helper()
	_, err := shared.hub.Plane.Client().RbacV1().RoleBindings(team).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if kubeconfig, err = shared.hub.Plane.UserKubeconfig(name); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
