// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestPlane shares one plane between all tests that need one and leave it
// usable.
func TestPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel) // the parallel tests end after this function
	began := time.Now()
	p := T(t, Options{UnsafeNoFsync: true})
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))

	t.Run("every program says which version it is", func(t *testing.T) {
		out, err := p.Kubectl(ctx, "version")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Client Version: " + kubeVersion, "Server Version: " + kubeVersion} {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl version gives %q, want %q in it", out, want)
			}
		}
	})
	t.Run("a namespace can be created and deleted", func(t *testing.T) {
		t.Parallel()
		if _, err := p.Kubectl(ctx, "create", "namespace", "empty"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Kubectl(ctx, "delete", "namespace", "empty", "--timeout=180s"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a token of a ServiceAccount is accepted and has the rights of RBAC only", func(t *testing.T) {
		t.Parallel()
		testToken(ctx, t, p)
	})
	t.Run("a Deployment becomes Available", func(t *testing.T) {
		t.Parallel()
		if _, err := p.Kubectl(ctx, "create", "deployment", "web", "--image=example.com/web:1", "--replicas=3"); err != nil {
			t.Fatal(err)
		}
		_, err := WaitFor(ctx, p.Dynamic(), appsv1.SchemeGroupVersion.WithResource("deployments"), "default", "web",
			HasCondition(string(appsv1.DeploymentAvailable), metav1.ConditionTrue, "MinimumReplicasAvailable"))
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a user gets the rights of RBAC only and cannot be of system:masters", func(t *testing.T) {
		t.Parallel()
		config, err := p.UserConfig("somebody", "some-team")
		if err != nil {
			t.Fatal(err)
		}
		client := clientFor(t, config)
		if _, err := client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets gives %v, want Forbidden", err)
		}
		if _, err := p.UserKubeconfig("somebody", "system:masters"); !errors.Is(err, ErrNotPermitted) {
			t.Errorf("a kubeconfig for system:masters gives %v, want %v", err, ErrNotPermitted)
		}
	})
	t.Run("the container of a Deployment runs as its manifest says", func(t *testing.T) {
		t.Parallel()
		testPod(ctx, t, p)
	})
	t.Run("waiting for kinds ends when discovery lists them all", func(t *testing.T) {
		t.Parallel()
		discovery := p.Client().Discovery()
		if err := WaitServed(ctx, discovery, appsv1.SchemeGroupVersion, "deployments", "deployments/status"); err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		err := WaitServed(short, discovery, appsv1.SchemeGroupVersion, "deployments", "nothings")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "[nothings]") {
			t.Errorf("error %v, want a deadline and the name that is missing", err)
		}
	})
	t.Run("the logs of a plane can be saved, and its use of the machine read", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := p.SaveLogs(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"supervisor.log", "plane/audit.log", "plane/kube-apiserver.log"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		u, err := UsageOf(p.PID(APIServer))
		if err != nil {
			t.Fatal(err)
		}
		if u.RSS < 50<<20 || u.Private <= 0 || u.Private > u.RSS || u.Anonymous <= 0 || u.Anonymous > u.RSS || u.CPU < 100*time.Millisecond {
			t.Errorf("the API server takes %+v", u)
		}
	})
	t.Run("waiting tells what the object looked like last", func(t *testing.T) {
		t.Parallel()
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := WaitFor(short, p.Dynamic(), nodes, "", NodeName, func(*unstructured.Unstructured) (bool, error) { return false, nil })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"kubeletVersion"`) {
			t.Errorf("error %v, want a deadline and the node", err)
		}
	})
}

// TestPlaneRestart has a plane of its own, so that it can stop and kill
// components.
func TestPlaneRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	p := T(t, Options{Name: "bare", UnsafeNoFsync: true, Without: []Component{ControllerManager, Scheduler, Kwok}})
	if _, err := p.Kubectl(ctx, "create", "namespace", "kept"); err != nil {
		t.Fatal(err)
	}
	namespaces := p.Client().CoreV1().Namespaces()

	t.Run("the audit log tells user, verb, object, user agent and code", func(t *testing.T) {
		events, err := AuditAll(p.AuditLog(), ByUser(AdminUser), ByAgent("kubectl/"), WithVerb("create"), AboutResource("", "namespaces"), Finished())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) != 1 || events[0].Code != 201 || events[0].Object.Name != "kept" || events[0].Masters() {
			t.Errorf("events %v, want one creation of the namespace by the admin", events)
		}
	})
	t.Run("system:masters was used for one request, which the filter leaves out", func(t *testing.T) {
		events, err := AuditAll(p.AuditLog(), Masters())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) != 1 || events[0].User != BootstrapUser || events[0].UserAgent != BootstrapAgent {
			t.Errorf("events by system:masters are %v, want one by %s", events, BootstrapUser)
		}
		events, err = AuditAll(p.AuditLog(), Masters(), NotHarness())
		if err != nil || len(events) > 0 {
			t.Errorf("without the harness %v (%v), want none", events, err)
		}
	})
	t.Run("an API server behind an ExternalName Service is reached with the user in its headers", func(t *testing.T) {
		testAggregation(ctx, t, p)
	})
	t.Run("the API server stops and starts again on the same port", func(t *testing.T) {
		if err := p.StopAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		if pid := p.PID(APIServer); pid != 0 {
			t.Errorf("stopped API server has process id %d", pid)
		}
		if _, err := namespaces.Get(ctx, "kept", metav1.GetOptions{}); err == nil {
			t.Error("a stopped API server answers")
		}
		if err := p.StartAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := namespaces.Get(ctx, "kept", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("etcd is killed and starts again with its data", func(t *testing.T) {
		if err := p.KillComponent(ctx, Etcd); err != nil {
			t.Fatal(err)
		}
		if err := p.StartEtcd(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := WaitFor(ctx, p.Dynamic(), nodes.GroupVersion().WithResource("namespaces"), "", "kept",
			func(*unstructured.Unstructured) (bool, error) { return true, nil }); err != nil {
			t.Error(err)
		}
	})
	t.Run("stopping twice is fine, and nothing runs afterwards", func(t *testing.T) {
		pid := p.PID(APIServer)
		for range 2 {
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		if alive(pid) {
			t.Error("API server is still there")
		}
		if _, err := p.Run(ctx, Program{Name: "late", Path: "true"}); !errors.Is(err, ErrClosed) {
			t.Errorf("starting a program afterwards gives %v, want %v", err, ErrClosed)
		}
	})
}

func testToken(ctx context.Context, t *testing.T, p *Plane) {
	got, err := p.Client().CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(p.RESTConfig())
	config.BearerToken = got.Status.Token
	client := clientFor(t, config)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if user := review.Status.UserInfo; user.Username != "system:serviceaccount:default:default" || slices.Contains(user.Groups, "system:masters") {
		t.Errorf("the token is that of %v", user)
	}
	if _, err := client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets gives %v, want Forbidden", err)
	}
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
