// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestOfTwoAgentsOfOneClusterOnlyTheHolderOfTheLeaseActs: a node that was cut off
// leaves two pods with one identity. They run with the rights of the shipped
// manifests, as the pods would.
func TestOfTwoAgentsOfOneClusterOnlyTheHolderOfTheLeaseActs(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	const folder = "pair"
	manifests, _ := join(ctx, t, folder)
	_, err := edge.KubectlInput(ctx, manifests, "apply", "-f", "-")
	must(t, err)
	account := func(pod string) string {
		path, err := edge.UserKubeconfig("system:serviceaccount:convoy-agent:convoy-agent", "system:serviceaccounts", "system:authenticated", pod)
		must(t, err)
		return path
	}
	a := start(ctx, t, account("pod-a"), install.AgentNamespace, "pod-a")
	deploy(ctx, t, folder)

	b := start(ctx, t, account("pod-b"), install.AgentNamespace, "pod-b")
	b.says(ctx, t, "another agent has the Lease", "pod-a")
	b.shows(ctx, t, "convoy_lease_held 0")
	a.shows(ctx, t, "convoy_lease_held 1")
	if code, _, err := b.get(ctx, "/readyz"); err != nil || code != http.StatusServiceUnavailable {
		t.Errorf("the one that waits says it is ready: %d %v", code, err)
	}
	held := holder(t, func(string) bool { return true })
	killed := time.Now()
	if calls := calls(t, "pod-b"); slices.ContainsFunc(calls, func(e harness.Event) bool { return e.Object.Resource != "leases" }) {
		t.Errorf("the one that waits did more than look at the Lease: %v", calls)
	}
	must(t, a.Kill9(ctx))

	taken := holder(t, func(name string) bool { return name == "pod-b" })
	if d := taken.renewed.Sub(held.renewed); d < 59*time.Second {
		t.Errorf("it took over %s after what was seen as the last renewal", d)
	}
	b.shows(ctx, t, "convoy_lease_held 1")
	b.shows(ctx, t, "convoy_link_connected 1")
	drift(ctx, t, folder)
	poll(ctx, t, "the one that took over is ready", func(ctx context.Context) bool {
		code, _, err := b.get(ctx, "/readyz")
		return err == nil && code == http.StatusOK
	})

	for _, pod := range []string{"pod-a", "pod-b"} {
		var before harness.Event
		for _, call := range calls(t, pod) {
			if call.Object.Resource != "leases" {
				continue
			}
			// Who finds the Lease free looks and takes it in one go.
			if gap := call.Received.Sub(before.Received); !before.Received.IsZero() && gap < 19*time.Second && (before.Verb != "get" || call.Verb == "get") {
				t.Errorf("%s: %s of the Lease %s after a %s", pod, call.Verb, gap, before.Verb)
			}
			before = call
		}
	}
	writes := 0
	for _, call := range slices.Concat(calls(t, "pod-a"), calls(t, "pod-b")) {
		if call.Object.Namespace == folder && call.Verb == "patch" && !strings.Contains(call.URI, "dryRun") {
			writes++
			if repair := call.Received.After(killed); repair != slices.Contains(call.Groups, "pod-b") {
				t.Errorf("written by the wrong one: %s", call)
			}
		}
	}
	if writes != 2 {
		t.Errorf("%d writes of the ConfigMap, want one to make it and one to repair it", writes)
	}
}

// tenure is who holds the Lease, and when that was renewed.
type tenure struct {
	name    string
	renewed time.Time
}

// holder waits until the Lease is held as wanted.
func holder(t *testing.T, is func(string) bool) tenure {
	t.Helper()
	var out tenure
	_, err := harness.WaitFor(deadline(t), edge.Dynamic(), leases, install.AgentNamespace, "convoy-agent", func(u *unstructured.Unstructured) (bool, error) {
		name, _, err := unstructured.NestedString(u.Object, "spec", "holderIdentity")
		if err != nil || !is(name) {
			return false, err
		}
		text, _, err := unstructured.NestedString(u.Object, "spec", "renewTime")
		if err != nil {
			return false, err
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		out = tenure{name: name, renewed: at}
		return true, err
	})
	must(t, err)
	return out
}

// calls of the agent that runs as that pod, in order.
func calls(t *testing.T, pod string) []harness.Event {
	t.Helper()
	all, err := harness.AuditAll(edge.AuditLog(), harness.ByAgent("convoy-agent"), harness.Finished(), func(e harness.Event) bool { return slices.Contains(e.Groups, pod) })
	must(t, err)
	slices.SortStableFunc(all, func(a, b harness.Event) int { return a.Received.Compare(b.Received) })
	return all
}
