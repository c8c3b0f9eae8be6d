// SPDX-License-Identifier: Apache-2.0

package modes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestATargetWhoseAPIServerIsStopped: it is said within a probe, its Releases wait,
// what runs is not touched, and all goes on when it is back.
func TestATargetWhoseAPIServerIsStopped(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	at, _ := agentless(ctx, t, "fails", shared.fails)
	kept, changed := newApp(ctx, t, "fails-kept", "a", "1"), newApp(ctx, t, "fails-changed", "a", "1")
	for _, a := range []*app{kept, changed} {
		a.to(ctx, t, at)
		a.ready(ctx, t, "")
	}
	before := kept.live(ctx, t, at.plane, "a", "1")
	stopped := time.Now()
	if err := at.plane.StopAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	away := waitCluster(ctx, t, at.name, "False", corev1alpha1.ReasonProbeFailed, "cannot be reached")
	if away.Status.Reachable {
		t.Error("it is said to be reachable")
	}
	commit := changed.commit(ctx, t, "a", "2")
	changed.sync(ctx, t)
	changed.until(ctx, t, "waiting for its cluster", func(r *corev1alpha1.Release) bool {
		ok, _ := condition(r.Status.Conditions, corev1alpha1.ConditionApplied, "False", corev1alpha1.ReasonClusterNotReady)
		return ok
	})
	kept.until(ctx, t, "unknown", func(r *corev1alpha1.Release) bool {
		sync, _ := condition(r.Status.Conditions, corev1alpha1.ConditionInSync, "Unknown", corev1alpha1.ReasonDisconnected)
		applied, _ := condition(r.Status.Conditions, corev1alpha1.ConditionApplied, "True", "")
		return sync && applied
	})
	if err := at.plane.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	waitCluster(ctx, t, at.name, "True", corev1alpha1.ReasonConnected, "")
	changed.ready(ctx, t, commit)
	changed.live(ctx, t, at.plane, "a", "2")
	kept.ready(ctx, t, "")
	if after := kept.live(ctx, t, at.plane, "a", "1"); after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("what needed no change was changed")
	}
	events, err := harness.AuditAll(at.plane.AuditLog(), harness.ByAgent(userAgent), harness.Since(stopped), harness.WithVerb("patch", "update", "delete"), harness.AboutResource("", "configmaps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if event.Object.Namespace == kept.name {
			t.Errorf("what needed no change was written: %s", event)
		}
	}
}

// TestWhatCannotBeServedSaysWhy, with nothing dialled that must not be.
func TestWhatCannotBeServedSaysWhy(t *testing.T) {
	t.Parallel()
	good := func(server, user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: it, user: hub}}]\n" +
			"clusters: [{name: it, cluster: {server: '" + server + "'}}]\nusers: [{name: hub, user: {" + user + "}}]\n"
	}
	const nowhere = "https://127.0.0.1:1"
	tests := map[string]struct {
		kubeconfig   string
		mod          func(*corev1alpha1.Cluster)
		reason, says string
	}{
		"an auth type that is not built": {
			mod: func(c *corev1alpha1.Cluster) {
				c.Spec.Agentless.Auth = corev1alpha1.ClusterAuth{Type: "workloadIdentity"}
			}, reason: corev1alpha1.ReasonUnsupported, says: `"workloadIdentity" is not built`,
		},
		"no Secret":                  {reason: corev1alpha1.ReasonProbeFailed, says: "does not exist"},
		"no kubeconfig":              {kubeconfig: "x: [", reason: corev1alpha1.ReasonProbeFailed, says: "cannot be read"},
		"a program":                  {kubeconfig: good(nowhere, "exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}"), reason: corev1alpha1.ReasonUnsupported, says: "users[hub].user.exec"},
		"a file of the hub":          {kubeconfig: good(nowhere, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), reason: corev1alpha1.ReasonUnsupported, says: "users[hub].user.tokenFile"},
		"nobody there":               {kubeconfig: good(nowhere, "token: t"), reason: corev1alpha1.ReasonProbeFailed, says: "connection refused"},
		"a metadata service":         {kubeconfig: good("https://169.254.169.254", "token: t"), reason: corev1alpha1.ReasonProbeFailed, says: "--cluster-allow-cidr"},
		"a certificate of strangers": {kubeconfig: good(shared.edge.URL(), "token: t"), reason: corev1alpha1.ReasonProbeFailed, says: "unknown authority"},
		"a token of strangers":       {kubeconfig: string(withToken(t, shared.edge, "nobody's")), reason: corev1alpha1.ReasonProbeFailed, says: "does not accept the credentials"},
	}
	n := 0
	for name, test := range tests {
		n++
		object := fmt.Sprintf("broken-%d", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t)
			if test.kubeconfig != "" {
				secret(ctx, t, object, []byte(test.kubeconfig))
			}
			mods := []func(*corev1alpha1.Cluster){}
			if test.mod != nil {
				mods = append(mods, test.mod)
			}
			apply(ctx, t, cluster(object, mods...))
			c := waitCluster(ctx, t, object, "False", test.reason, test.says)
			if c.Status.Reachable || c.Status.ClusterUID != "" {
				t.Errorf("the status says more than was found out: %+v", c.Status)
			}
			for _, said := range c.Status.Conditions {
				if strings.Contains(said.Message, "nobody's") {
					t.Errorf("a secret is told: %s", said.Message)
				}
			}
			remove(ctx, t, install.Clusters, object)
		})
	}
}
