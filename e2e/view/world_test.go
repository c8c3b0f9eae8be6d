// SPDX-License-Identifier: Apache-2.0

package view_test

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// team is the namespace of the suite, on the hub and on the edge.
	team = "team-view"
	edge = "edge"
	// secret and other are values that nobody may be shown.
	secret, other = "correct-horse-battery", "wrong-horse-battery"
	// setup may take so long, with the programs built; patience of one test, pause between
	// two looks.
	setup    = 15 * time.Minute
	patience = 8 * time.Minute
	pause    = 300 * time.Millisecond
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// shared by all tests.
var shared struct {
	*install.Base
	hub  *install.Hub
	edge *install.Edge
	repo *gitserver.Repository
}

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

// app is one ConfigMap of a color and a Secret.
func app(color string) map[string]string {
	files := map[string]string{}
	for _, name := range []string{"shop", "manual", "hooked"} {
		files[name+"/app.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {color: %s}\n---\n"+
			"apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {password: %s}\n", name, color, name, secret)
	}
	return files
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	if shared.Base, err = install.NewBase(ctx, "view", harness.Options{Name: "hub"}, harness.Options{Name: edge}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	if shared.hub, err = install.StartHub(ctx, shared.Planes[0], shared.Programs); err != nil {
		return 1, err
	}
	if _, err := shared.Planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return 1, err
	}
	if shared.repo, err = shared.Git.Repository(ctx, "apps"); err != nil {
		return 1, err
	}
	if _, err := shared.repo.Commit(ctx, "first", app("red")); err != nil {
		return 1, err
	}
	if err := shared.hub.Source(ctx, shared.Git, team, "apps", metav1.Duration{Duration: time.Minute}); err != nil {
		return 1, err
	}
	if shared.edge, err = shared.hub.Join(ctx, shared.Planes[1], team, edge); err != nil {
		return 1, err
	}
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, "end of the log of the hub:\n"+install.Tail(shared.hub.Pod.Log()))
		fmt.Fprintln(os.Stderr, "end of the log of the agent:\n"+install.Tail(shared.edge.Pod.Log()))
	}
	return code, nil
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

// plugin runs kubectl convoy as somebody. It never shows a Secret.
func plugin(ctx context.Context, t *testing.T, kubeconfig string, args ...string) answer {
	t.Helper()
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
	for _, shown := range []string{secret, other, "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "d3JvbmctaG9yc2UtYmF0dGVyeQ"} {
		if strings.Contains(got.out+got.problems, shown) {
			t.Errorf("a Secret's value is told by kubectl convoy %s: %s%s", strings.Join(args, " "), got.out, got.problems)
		}
	}
	return got
}

// admin runs it as the administrator of the plane.
func admin(ctx context.Context, t *testing.T, args ...string) answer {
	t.Helper()
	return plugin(ctx, t, shared.hub.Plane.Kubeconfig(), args...)
}

// until the plugin answers as it should.
func until(ctx context.Context, t *testing.T, what string, right func(answer) bool, args ...string) answer {
	t.Helper()
	var last answer
	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, func(ctx context.Context) (bool, error) {
		last = admin(ctx, t, args...)
		return right(last), nil
	})
	if err != nil {
		t.Fatalf("%s: %v: exit code %d\n%s%s", what, err, last.code, last.out, last.problems)
	}
	return last
}

// user has a ClusterRole in the suite's namespace.
func user(ctx context.Context, t *testing.T, name string) (kubeconfig string) {
	t.Helper()
	_, err := shared.hub.Plane.Client().RbacV1().RoleBindings(team).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
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
