// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// revision is the revision of the hub's etcd: it grows by one with each write
// of any object of ours.
func revision(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	list, err := shared.hub.Plane.Dynamic().Resource(install.Clusters).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestARolloutCostsTwoStatusWritesAndAnIdleMinuteNone counts, for one Release,
// what a watcher sees, and for all of them what etcd counts: create, ordered,
// settled, and one inventory.
func TestARolloutCostsTwoStatusWritesAndAnIdleMinuteNone(t *testing.T) {
	ctx := within(t, 2*patience)
	const ns = "budget"
	a := newApp(ctx, t, ns, map[string]string{
		"app/one.yaml": configMap(ns, "one", "a", "1"),
		"app/two.yaml": configMap(ns, "two", "a", "1"),
	})
	// The source's own status, written when it is first seen, is not the
	// Release's.
	if _, err := harness.WaitFor(ctx, shared.hub.Plane.Dynamic(), install.GitRepositories, team, ns, harness.HasCondition("Ready", "True", "")); err != nil {
		t.Fatal(err)
	}
	watcher, err := shared.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + ns})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	before := revision(ctx, t)
	a.release(ctx, t, ns, "app")
	first := until(ctx, t, ns, ready(""))
	settled := revision(ctx, t)
	if cost := settled - before; cost > 4 {
		t.Errorf("etcd counts %d writes for a rollout, want at most 4: create, ordered, settled, inventory", cost)
	}
	if writes := statusWrites(ctx, t, watcher, first.ResourceVersion); writes > 2 {
		t.Errorf("the Release was written %d times, want at most 2", writes)
	}

	commit := a.commit(ctx, t, map[string]string{"app/one.yaml": configMap(ns, "one", "a", "2"), "app/two.yaml": configMap(ns, "two", "a", "1")})
	second := until(ctx, t, ns, ready(commit))
	if writes := statusWrites(ctx, t, watcher, second.ResourceVersion); writes > 2 {
		t.Errorf("an upgrade wrote the Release %d times, want at most 2", writes)
	}

	// Sources are looked at twelve times in this minute, agents ping three
	// times. Nothing of it is worth a write.
	before = idle(ctx, t)
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	if after := revision(ctx, t); after != before {
		t.Errorf("an idle minute wrote %d times", after-before)
	}
}

// statusWrites counts the modifications that a watcher saw up to a version.
func statusWrites(ctx context.Context, t *testing.T, watcher watch.Interface, upTo string) int {
	t.Helper()
	for writes := 0; ; {
		select {
		case event, open := <-watcher.ResultChan():
			if !open {
				t.Fatal("the watch ended")
			}
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("the watch gave %T", event.Object)
			}
			if event.Type == watch.Modified {
				writes++
			}
			if u.GetResourceVersion() == upTo {
				return writes
			}
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

// idle waits until two seconds pass without a write and returns the revision.
func idle(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for last := revision(ctx, t); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
		now := revision(ctx, t)
		if now == last {
			return now
		}
		last = now
	}
}
