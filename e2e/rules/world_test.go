// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
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
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// team is the namespace of the suite on the hub.
	team = "team-rules"
	// repository that all is deployed from.
	repository = "queues"
	// patience of one test.
	patience = 6 * time.Minute
)

var queues = schema.GroupVersionResource{Group: "mq.example.com", Version: "v1", Resource: "queues"}

// queueKind is a custom kind that convoy knows nothing of.
const queueKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.mq.example.com}
spec:
  group: mq.example.com
  scope: Namespaced
  names: {kind: Queue, plural: queues, singular: queue}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          x-kubernetes-preserve-unknown-fields: true
`

// place is a Cluster of the hub and the plane that it stands for.
type place struct {
	name  string
	plane *harness.Plane
}

// shared by all tests: a hub, which is a target itself by an engine of its own, and an
// edge with an agent.
var shared struct {
	*install.Base
	hub    *install.Hub
	edge   *install.Edge
	places []place
}

func TestMain(m *testing.M) {
	os.Exit(install.Code(func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if shared.Base, err = install.NewBase(ctx, "rules", harness.Options{Name: "hub"}, harness.Options{Name: "edge"}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	if shared.hub, err = install.StartHub(ctx, shared.Planes[0], shared.Programs); err != nil {
		return 1, err
	}
	if err := furnish(ctx); err != nil {
		return 1, errors.Join(err, errors.New(install.Tail(shared.hub.Pod.Log())))
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, "end of the log of the hub:\n"+install.Tail(shared.hub.Pod.Log()))
		fmt.Fprintln(os.Stderr, "end of the log of the agent:\n"+install.Tail(shared.edge.Pod.Log()))
	}
	return code, nil
}

// furnish makes both Clusters, the custom kind in each, and the source.
func furnish(ctx context.Context) error {
	hub := shared.hub.Plane
	if _, err := hub.Kubectl(ctx, "create", "namespace", team); err != nil {
		return err
	}
	var err error
	if shared.edge, err = shared.hub.Join(ctx, shared.Planes[1], team, "edge"); err != nil {
		return err
	}
	root, err := harness.RepoRoot()
	if err != nil {
		return err
	}
	overlay, err := os.ReadFile(filepath.Join(root, "manifests", "hub", "overlays", "in-cluster", "rbac.yaml"))
	if err != nil {
		return err
	}
	if _, err := hub.KubectlInput(ctx, string(overlay), "apply", "-f", "-"); err != nil {
		return err
	}
	here := &corev1alpha1.Cluster{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1alpha1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: "here", Namespace: team},
		Spec: corev1alpha1.ClusterSpec{ConnectionMode: corev1alpha1.ConnectionModeInCluster},
	}
	if err := shared.hub.ApplyObjects(ctx, here); err != nil {
		return err
	}
	if err := shared.hub.WaitCluster(ctx, team, "here"); err != nil {
		return err
	}
	for _, plane := range shared.Planes {
		if _, err := plane.KubectlInput(ctx, queueKind, "apply", "-f", "-"); err != nil {
			return err
		}
		if _, err := plane.Kubectl(ctx, "wait", "--for=condition=Established", "crd/queues.mq.example.com"); err != nil {
			return err
		}
	}
	shared.places = []place{{"edge", shared.Planes[1]}, {"here", shared.Planes[0]}}
	repo, err := shared.Git.Repository(ctx, repository)
	if err != nil {
		return err
	}
	if _, err := repo.Commit(ctx, "a queue", map[string]string{"queue/all.yaml": "apiVersion: mq.example.com/v1\nkind: Queue\nmetadata: {name: orders}\nspec: {size: 3}\n"}); err != nil {
		return err
	}
	return shared.hub.Source(ctx, shared.Git, team, repository, metav1.Duration{Duration: time.Hour})
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// deployed makes a Release of the queue, in a namespace of its own at a place, and waits
// until it is Ready.
func deployed(ctx context.Context, t *testing.T, at place, name string, sets ...string) string {
	t.Helper()
	if _, err := at.plane.Kubectl(ctx, "create", "namespace", name); err != nil {
		t.Fatal(err)
	}
	apply(ctx, t, install.Release(team, name, at.name, repository, "queue", func(r *corev1alpha1.Release) {
		r.Spec.TargetNamespace, r.Spec.Health.RuleSets = name, sets
	}))
	return name
}

func apply(ctx context.Context, t *testing.T, objects ...any) {
	t.Helper()
	if err := shared.hub.ApplyObjects(ctx, objects...); err != nil {
		t.Fatal(err)
	}
}

// kubectl applies manifests on the hub, as a user does.
func kubectl(ctx context.Context, t *testing.T, manifest string) {
	t.Helper()
	if _, err := shared.hub.Plane.KubectlInput(ctx, manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// set is a HealthRuleSet, or a global one, with rules for queues.
func set(kind, name, rules string) string {
	namespace := ", namespace: " + team
	if kind == "GlobalHealthRuleSet" {
		namespace = ""
	}
	return fmt.Sprintf("apiVersion: extensions.convoy.kumodo.io/v1alpha1\nkind: %s\nmetadata: {name: %s%s}\nspec:\n  rules:\n%s", kind, name, namespace, rules)
}

// shows waits until a Release has a condition, and gives the Release.
func shows(ctx context.Context, t *testing.T, release, kind, status, reason, says string) *corev1alpha1.Release {
	t.Helper()
	var last *corev1alpha1.Release
	_, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.Releases, team, release, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		if err != nil {
			return false, err
		}
		last = r
		for _, c := range r.Status.Conditions {
			if c.Type == kind {
				return string(c.Status) == status && (reason == "" || c.Reason == reason) && strings.Contains(c.Message, says), nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("Release %s never has %s=%s %s %q: %v", release, kind, status, reason, says, err)
	}
	return last
}

// phase lets the queue of a Release be in a phase, as its controller would.
func phase(ctx context.Context, t *testing.T, at place, release, value string) {
	t.Helper()
	_, err := at.plane.Dynamic().Resource(queues).Namespace(release).Patch(ctx, "orders", types.MergePatchType,
		fmt.Appendf(nil, `{"status":{"phase":%q}}`, value), metav1.PatchOptions{FieldManager: "queue-controller"}, "status")
	if err != nil {
		t.Fatal(err)
	}
}
