// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestWhatAnAgentThatIsInstalledAnewDoesNotKnowIsLeftAndNamed: its namespace was deleted,
// with all records, and it joined again. What left a render meanwhile, and what was of a
// Release that was deleted meanwhile, stays; Events name it and the Cluster counts it.
func TestWhatAnAgentThatIsInstalledAnewDoesNotKnowIsLeftAndNamed(t *testing.T) {
	stays, goes := newApp(t, "anew", 3, 12*time.Minute), newApp(t, "forgotten", 1, 12*time.Minute)
	before := stays.first("1")
	goes.first("1")
	if err := shared.agent.Stop(stays.ctx); err != nil {
		t.Fatal(err)
	}
	// There is no controller here that would empty a namespace.
	core := shared.edge.Client().CoreV1()
	if err := core.Secrets(shared.agent.Namespace).DeleteCollection(stays.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	stays.objects = 2
	old := stays.until(func(*corev1alpha1.Release) bool { return true })
	commit := stays.commit("2")
	stays.sync()
	// Or the new agent would apply the older order first, and know what it has.
	stays.until(func(r *corev1alpha1.Release) bool { return r.Status.Sequence > old.Status.Sequence })
	if err := shared.host.Dynamic().Resource(install.Releases).Namespace(team).Delete(stays.ctx, goes.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	agent, err := shared.hub.JoinDirect(stays.ctx, shared.edge, team, "edge", shared.agent.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	shared.agent = agent
	if err := agent.Start(stays.ctx); err != nil {
		t.Fatal(err)
	}
	stays.ready(commit)
	if after := stays.first("2"); after.GetUID() != before.GetUID() {
		t.Error("the object was made again")
	}

	_, err = harness.WaitFor(stays.ctx, shared.host.Dynamic(), install.Clusters, team, "edge", func(u *unstructured.Unstructured) (bool, error) {
		cluster, err := harness.As[corev1alpha1.Cluster](u)
		return err == nil && cluster.Status.LeftBehind == 2, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitGone(stays.ctx, shared.host.Dynamic(), install.Releases, team, goes.name); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"anew-0002", "forgotten-0000"} {
		if _, err := core.ConfigMaps(team).Get(stays.ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("what was left behind: %v", err)
		}
	}
	for kind, says := range map[string]string{"Release": "ConfigMap team/anew-0002", "Cluster": "Release team/forgotten was deleted"} {
		event := eventually(stays, func(e *corev1.Event) bool {
			return e.Reason == corev1alpha1.ReasonLeftBehind && e.InvolvedObject.Kind == kind
		})
		if !strings.Contains(event.Message, says) {
			t.Errorf("the Event of the %s says: %s", kind, event.Message)
		}
	}
	stays.heals("2")
}

// eventually gives the first Event of the team that is so.
func eventually(a *app, is func(*corev1.Event) bool) *corev1.Event {
	a.t.Helper()
	for {
		list, err := shared.host.Client().CoreV1().Events(team).List(a.ctx, metav1.ListOptions{})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			a.t.Fatal(err)
		}
		for i := range list.Items {
			if is(&list.Items[i]) {
				return &list.Items[i]
			}
		}
		a.pass(200*time.Millisecond, errOver)
	}
}
