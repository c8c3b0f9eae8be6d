// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolswatch "k8s.io/client-go/tools/watch"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	namespace = "bench"
	// patience bounds one wait.
	patience = 5 * time.Minute

	latencyRounds = 100
	driftRounds   = 100

	// slowRepair says what a repair consists of.
	slowRepair = "a repair is an event of the edge's watch, a dry run and an apply; the agent waits for nothing else, so the time is the API server's and its etcd's."
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// manifest is a ConfigMap with about 0.3 KB of data.
func manifest(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: one, filler: %q}\n",
		name, namespace, strings.Repeat("0123456789", 30))
}

// content makes releases folders r-000.. of objects files each, in a new
// repository that the hub knows the revision of.
func content(ctx context.Context, b *bed, name string, releases, objects int) error {
	return contentOf(ctx, b, name, slices.Repeat([]int{objects}, releases))
}

// contentOf is content with as many objects in each folder as counts says.
func contentOf(ctx context.Context, b *bed, name string, counts []int) error {
	repo, err := b.git.Repository(ctx, name)
	if err != nil {
		return err
	}
	files := map[string]string{}
	for r, objects := range counts {
		for o := range objects {
			object := fmt.Sprintf("%s-%03d-%02d", name, r, o)
			files[fmt.Sprintf("%s-%03d/%02d.yaml", name, r, o)] = manifest(object)
		}
	}
	if _, err := repo.Commit(ctx, "content", files); err != nil {
		return err
	}
	if err := b.hub.Source(ctx, b.git, namespace, name, metav1.Duration{Duration: time.Hour}); err != nil {
		return err
	}
	_, err = harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.GitRepositories, namespace, name, harness.HasCondition("Ready", "True", ""))
	return err
}

// watchAll opens a watch on a resource of the namespace from now on. When the server
// ends it, as it does with one that is read too slowly, it goes on from where it was.
func watchAll(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource) (watch.Interface, error) {
	list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), resource{client.Resource(gvr).Namespace(namespace)})
}

// resource is one as a watch asks for it.
type resource struct{ dynamic.ResourceInterface }

func (r resource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return r.Watch(ctx, options)
}

// await reads a watch until seen says that all is there, and gives the time of
// that event.
func await(ctx context.Context, w watch.Interface, seen func(*unstructured.Unstructured) bool) (time.Time, error) {
	for {
		select {
		case event, open := <-w.ResultChan():
			now := time.Now()
			if !open {
				return now, fmt.Errorf("the watch ended")
			}
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return now, fmt.Errorf("the watch gave %T", event.Object)
			}
			if event.Type != watch.Deleted && seen(u) {
				return now, nil
			}
		case <-ctx.Done():
			return time.Now(), ctx.Err()
		}
	}
}

// countTo says true at the n-th different name with the prefix that is good.
func countTo(n int, prefix string, good func(*unstructured.Unstructured) bool) func(*unstructured.Unstructured) bool {
	names := map[string]bool{}
	return func(u *unstructured.Unstructured) bool {
		if strings.HasPrefix(u.GetName(), prefix) && good(u) {
			names[u.GetName()] = true
		}
		return len(names) == n
	}
}

func anyObject(*unstructured.Unstructured) bool { return true }

func isReady(u *unstructured.Unstructured) bool {
	ready, err := harness.HasCondition("Ready", "True", "")(u)
	return ready && err == nil
}

// applyLatency: one new Release of 10 objects at a time.
func applyLatency(ctx context.Context, b *bed) error {
	const objects = 10
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	if err := content(ctx, b, "latency", latencyRounds, objects); err != nil {
		return err
	}
	var there, ready []time.Duration
	for r := range latencyRounds {
		name := fmt.Sprintf("latency-%03d", r)
		if err := func() error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			edge, err := watchAll(ctx, b.edge.Plane.Dynamic(), configMaps)
			if err != nil {
				return err
			}
			defer edge.Stop()
			hub, err := watchAll(ctx, b.hub.Plane.Dynamic(), install.Releases)
			if err != nil {
				return err
			}
			defer hub.Stop()
			start := time.Now()
			if err := b.hub.ApplyObjects(ctx, install.Release(namespace, name, b.edge.Name, "latency", name)); err != nil {
				return err
			}
			end, err := await(ctx, edge, countTo(objects, name+"-", anyObject))
			if err != nil {
				return err
			}
			there = append(there, end.Sub(start))
			if end, err = await(ctx, hub, countTo(1, name, isReady)); err != nil {
				return err
			}
			ready = append(ready, end.Sub(start))
			return nil
		}(); err != nil {
			return fmt.Errorf("round %d: %w", r, err)
		}
	}
	b.out.add("kubectl apply on the hub until 10 objects are there", "p50 <= 200 ms, p99 <= 600 ms",
		"p50 %s, p99 %s (n=%d)", millis(quantile(there, 0.5)), millis(quantile(there, 0.99)), len(there))
	b.out.unless(quantile(there, 0.5) <= 200*time.Millisecond && quantile(there, 0.99) <= 600*time.Millisecond, "one after the other, on the same two cores: kubectl starts, "+
		"reads what the host serves and applies; the hub admits, renders and signs; the agent fetches, and writes what it is about to do; of each object the edge's API server makes a dry run and an apply.")
	b.out.add("the same until Ready on the hub", "-",
		"p50 %s, p99 %s", millis(quantile(ready, 0.5)), millis(quantile(ready, 0.99)))
	return nil
}

// driftLatency: objects of one Release are edited one after the other, first
// with the hub up, then with it stopped.
func driftLatency(ctx context.Context, b *bed) error {
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	if err := content(ctx, b, "drift", 1, driftRounds); err != nil {
		return err
	}
	if err := b.hub.ApplyObjects(ctx, install.Release(namespace, "drift-000", b.edge.Name, "drift", "drift-000")); err != nil {
		return err
	}
	if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, "drift-000", harness.HasCondition("Ready", "True", "")); err != nil {
		return err
	}
	up, err := driftRound(ctx, b)
	if err != nil {
		return fmt.Errorf("hub up: %w", err)
	}
	if err := b.hub.Pod.Stop(ctx); err != nil {
		return err
	}
	down, err := driftRound(ctx, b)
	if err != nil {
		return fmt.Errorf("hub down: %w", err)
	}
	b.out.add("edit of an owned object until repaired, hub up", "p99 <= 500 ms",
		"p50 %s, p99 %s (n=%d)", millis(quantile(up, 0.5)), millis(quantile(up, 0.99)), len(up))
	b.out.unless(quantile(up, 0.99) <= 500*time.Millisecond, slowRepair)
	b.out.add("the same, hub stopped", "p99 <= 500 ms",
		"p50 %s, p99 %s (n=%d)", millis(quantile(down, 0.5)), millis(quantile(down, 0.99)), len(down))
	b.out.unless(quantile(down, 0.99) <= 500*time.Millisecond, slowRepair)
	if err := b.hub.Run(ctx); err != nil {
		return err
	}
	if err := b.hub.WaitReady(ctx); err != nil {
		return err
	}
	if err := b.hub.WaitServed(ctx); err != nil {
		return err
	}
	return b.hub.WaitCluster(ctx, namespace, b.edge.Name)
}

func driftRound(ctx context.Context, b *bed) ([]time.Duration, error) {
	maps := b.edge.Plane.Dynamic().Resource(configMaps).Namespace(namespace)
	var out []time.Duration
	for r := range driftRounds {
		name := fmt.Sprintf("drift-000-%02d", r)
		if err := func() error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			w, err := watchAll(ctx, b.edge.Plane.Dynamic(), configMaps)
			if err != nil {
				return err
			}
			defer w.Stop()
			start := time.Now()
			if _, err := maps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"value":"edited"}}`), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
				return err
			}
			end, err := await(ctx, w, countTo(1, name, func(u *unstructured.Unstructured) bool {
				value, _, err := unstructured.NestedString(u.Object, "data", "value")
				return err == nil && value == "one"
			}))
			out = append(out, end.Sub(start))
			return err
		}(); err != nil {
			return nil, fmt.Errorf("round %d: %w", r, err)
		}
	}
	return out, nil
}

// bulk: 1,000 objects in 50 Releases at once.
func bulk(ctx context.Context, b *bed) error {
	const releases, objects = 50, 20
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	if err := content(ctx, b, "bulk", releases, objects); err != nil {
		return err
	}
	edge, err := watchAll(ctx, b.edge.Plane.Dynamic(), configMaps)
	if err != nil {
		return err
	}
	defer edge.Stop()
	hub, err := watchAll(ctx, b.hub.Plane.Dynamic(), install.Releases)
	if err != nil {
		return err
	}
	defer hub.Stop()
	pid := b.edge.Pod.PID()
	cpuBefore, err := cpu(pid)
	if err != nil {
		return err
	}
	hubBefore, err := cpu(b.hub.Pod.PID())
	if err != nil {
		return err
	}
	all := make([]any, 0, releases)
	for r := range releases {
		name := fmt.Sprintf("bulk-%03d", r)
		all = append(all, install.Release(namespace, name, b.edge.Name, "bulk", name))
	}
	type end struct {
		at  time.Time
		err error
	}
	there, ready := make(chan end, 1), make(chan end, 1)
	start := time.Now()
	go func() {
		at, err := await(ctx, edge, countTo(releases*objects, "bulk-", anyObject))
		there <- end{at, err}
	}()
	go func() {
		at, err := await(ctx, hub, countTo(releases, "bulk-", isReady))
		ready <- end{at, err}
	}()
	if err := b.hub.ApplyObjects(ctx, all...); err != nil {
		return err
	}
	t, r := <-there, <-ready
	if t.err != nil || r.err != nil {
		return fmt.Errorf("there: %w, ready: %w", t.err, r.err)
	}
	select {
	case <-time.After(3 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	cpuAfter, err := cpu(pid)
	if err != nil {
		return err
	}
	hubAfter, err := cpu(b.hub.Pod.PID())
	if err != nil {
		return err
	}
	b.out.add("1,000 objects in 50 Releases: all there / all Ready", "<= 5 s / <= 7 s",
		"%.1f s / %.1f s", t.at.Sub(start).Seconds(), r.at.Sub(start).Seconds())
	b.out.unless(t.at.Sub(start) <= 5*time.Second && r.at.Sub(start) <= 7*time.Second, shared(r.at.Sub(start), hubAfter-hubBefore, cpuAfter-cpuBefore))
	b.out.add("CPU of the agent for them", "<= 5 s", "%.1f s", (cpuAfter - cpuBefore).Seconds())
	b.out.unless(cpuAfter-cpuBefore <= 5*time.Second, agentProfile)
	b.resting = time.Now()
	return nil
}
