// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// owned and foreign are the objects of the edge that is at rest.
	owned, foreign = 4_000, 50_000
	// eachRelease has so many of the owned ones.
	eachRelease = 100
	// most is what the agent may take for them, files of its program left out, a minute
	// after the last work: the runtime, and some 2 KiB for each object.
	most = 30 << 20
	// watched is how long the edge is looked at.
	watched = 10 * time.Minute
)

// TestAnEdgeAtRestMakesHardlyACall counts every call of an agent with 4,000 objects of
// its own and 50,000 of others for ten minutes, and what others' objects cost it.
func TestAnEdgeAtRestMakesHardlyACall(t *testing.T) {
	if !soak() {
		t.Skip("watches for ten minutes: CONVOY_SOAK=1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), watched+20*time.Minute)
	defer cancel()
	repository, err := shared.git.Repository(ctx, "rest")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var releases []*corev1alpha1.Release
	for r := range owned / eachRelease {
		folder := fmt.Sprintf("rest-%02d", r)
		for i := range eachRelease {
			name := fmt.Sprintf("%s-%03d", folder, i)
			files[folder+"/"+name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q}\n", name, strings.Repeat("x", 200))
		}
		releases = append(releases, install.Release(team, folder, "edge", "rest", folder))
	}
	if _, err := repository.Commit(ctx, "all", files); err != nil {
		t.Fatal(err)
	}
	if err := shared.hub.Source(ctx, shared.git, team, "rest", metav1.Duration{Duration: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := shared.hub.Create(ctx, releases...); err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		if _, err := harness.WaitFor(ctx, shared.host.Dynamic(), install.Releases, team, r.Name, harness.HasCondition("Ready", metav1.ConditionTrue, "")); err != nil {
			t.Fatal(err)
		}
	}
	pass := func(d time.Duration) {
		select {
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		case <-time.After(d):
		}
	}
	pass(time.Minute)
	before := usage(t)
	if err := crowd(ctx, foreign); err != nil {
		t.Fatal(err)
	}
	pass(time.Minute)
	after := usage(t)
	growth := float64(after.Anonymous-before.Anonymous) / float64(before.Anonymous) * 100
	t.Logf("agent with %d objects of its own: %.1f MiB private, %.1f MiB RSS; with %d of others: %.1f and %.1f; growth %.1f %%",
		owned, mib(before.Anonymous), mib(before.RSS), foreign, mib(after.Anonymous), mib(after.RSS), growth)
	if before.Anonymous > most {
		t.Errorf("the agent takes %.1f MiB for %d objects, want at most %.0f", mib(before.Anonymous), owned, mib(most))
	}
	if growth >= 5 {
		t.Errorf("the agent grew by %.1f %% with objects that are not its own, want less than 5 %%", growth)
	}

	began := time.Now()
	pass(watched)
	calls, watches := map[string]int{}, 0
	total := 0
	for event, err := range harness.Audit(shared.edge.AuditLog(), harness.Since(began), harness.ByServiceAccountsOf(install.AgentNamespace), harness.Finished()) {
		if err != nil {
			t.Fatal(err)
		}
		resource := event.Object.Resource
		if event.Object.Subresource != "" {
			resource += "/" + event.Object.Subresource
		}
		if resource == "" {
			resource = event.URI
		}
		calls[event.Verb+" "+resource]++
		if event.Verb == "watch" {
			watches++
			continue
		}
		total++
	}
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		t.Logf("%6d %s", calls[what], what)
	}
	rate := float64(total) / watched.Seconds()
	t.Logf("%d calls and %d watches in %s: %.3f calls/s", total, watches, watched, rate)
	if rate > 0.1 {
		t.Errorf("an edge at rest makes %.3f calls/s, want at most 0.1", rate)
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func usage(t *testing.T) harness.Usage {
	t.Helper()
	u, err := harness.UsageOf(shared.agent.Process().PID())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// crowd makes ConfigMaps that are nobody's of ours, beside those that are.
func crowd(ctx context.Context, count int) error {
	client, err := dynamic.NewForConfig(shared.edge.RESTConfig())
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("foreign-%05d", i)},
				"data": map[string]any{"k": strings.Repeat("y", 200)},
			}}
			_, err := client.Resource(configMaps).Namespace(team).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return errors.Join(errors.New("the crowd is not there"), err)
	}
	return nil
}
