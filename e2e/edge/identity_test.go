// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func connected(c *corev1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, "Ready")
}

func TestARevokedAgentGoesOnEnforcingSaysWhyAndComesBackWithANewToken(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	const name = "revoked"
	a := site(ctx, t, name)
	_, err := hub.Plane.KubectlInput(ctx, `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"RevokeRequest"}`,
		"create", "--raw", "/apis/core.convoy.kumodo.io/v1alpha1/namespaces/"+team+"/clusters/"+name+"/revoke", "-f", "-")
	must(t, err)
	a.shows(ctx, t, "convoy_link_connected 0")
	drift(ctx, t, name)
	a.says(ctx, t, "the hub refuses this agent", `"reason":"Revoked"`)
	a.shows(ctx, t, `convoy_link_refused{reason="Revoked"} 1`)
	drift(ctx, t, name)
	cluster(ctx, t, name, func(c *corev1alpha1.Cluster) bool { return !connected(c) })

	_, token := join(ctx, t, name)
	give(ctx, t, "agent-"+name, token)
	cluster(ctx, t, name, connected)
	a.shows(ctx, t, "convoy_link_connected 1")
	drift(ctx, t, name)
	if !a.Running() {
		t.Error("the agent ended over it")
	}
}

func TestATokenOfAnotherClusterWaitsUntilTheAgentsOwnIsGone(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	const name, other = "moved", "moved-there"
	a := site(ctx, t, name)
	_, token := join(ctx, t, other)
	give(ctx, t, "agent-"+name, token)
	a.shows(ctx, t, "convoy_link_foreign_token 1")
	a.says(ctx, t, "there is a join token for another Cluster")
	_, err := a.Stop(ctx)
	must(t, err)
	a = start(ctx, t, edge.Kubeconfig(), "agent-"+name, "two")
	a.shows(ctx, t, "convoy_link_connected 1")
	a.shows(ctx, t, "convoy_link_foreign_token 1")
	drift(ctx, t, name)

	_, err = hub.Plane.Kubectl(ctx, "-n", team, "delete", "clusters.core.convoy.kumodo.io", name, "--wait=false")
	must(t, err)
	exit, err := a.Wait(ctx)
	must(t, err)
	if exit.Code != 1 {
		t.Errorf("ended with %s", exit)
	}
	a.says(ctx, t, `"level":"INFO"`, "the agent ends, to be started anew", "it joined as another Cluster")
	raw, err := os.ReadFile(a.Log())
	must(t, err)
	if strings.Contains(string(raw), `"level":"ERROR"`) {
		t.Error("an error was logged over it")
	}
	a = start(ctx, t, edge.Kubeconfig(), "agent-"+name, "two") // as the kubelet does
	cluster(ctx, t, other, connected)
	a.shows(ctx, t, "convoy_link_foreign_token 0")
	if _, err := edge.Dynamic().Resource(configMaps).Namespace(name).Get(ctx, "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("what ran is gone: %v", err)
	}
}

func TestAnAgentThatReachesNothingEndsToBeStartedAnew(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	_, token := join(ctx, t, "nowhere")
	_, err := edge.Kubectl(ctx, "create", "namespace", "agent-nowhere")
	must(t, err)
	give(ctx, t, "agent-nowhere", token)
	a := start(ctx, t, edge.Kubeconfig(), "agent-nowhere", "one", "--gateway-url=wss://127.0.0.1:1", "--restart-after=3s")
	exit, err := a.Wait(ctx)
	must(t, err)
	if exit.Code != 1 {
		t.Errorf("ended with %s", exit)
	}
	a.says(ctx, t, `"level":"INFO"`, "the agent ends, to be started anew", "nothing was reached")
}
