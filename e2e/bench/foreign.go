// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// foreignNamespace on the edge holds what is not ours.
const foreignNamespace = "foreign"

// foreignObjects: what the agent grows by when the edge gets many objects that it
// does not own.
func foreignObjects(ctx context.Context, b *bed) error {
	const releases, objects = 10, 100
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	if err := content(ctx, b, "owned", releases, objects); err != nil {
		return err
	}
	all := make([]any, 0, releases)
	for r := range releases {
		name := fmt.Sprintf("owned-%03d", r)
		all = append(all, install.Release(namespace, name, b.edge.Name, "owned", name))
	}
	if err := b.hub.ApplyObjects(ctx, all...); err != nil {
		return err
	}
	for r := range releases {
		if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, fmt.Sprintf("owned-%03d", r), harness.HasCondition("Ready", "True", "")); err != nil {
			return err
		}
	}
	owned, err := ownedObjects(ctx, b.edge)
	if err != nil {
		return err
	}
	if err := untilCalm(ctx, b.edge); err != nil {
		return err
	}
	pid := b.edge.Pod.PID()
	before, err := memory(pid, "RssAnon")
	if err != nil {
		return err
	}
	if err := makeForeign(ctx, b, b.opts.foreign); err != nil {
		return err
	}
	if err := pause(ctx, b.opts.rest); err != nil {
		return err
	}
	after, err := memory(pid, "RssAnon")
	if err != nil {
		return err
	}
	b.out.add(fmt.Sprintf("agent memory (private) with %s owned objects, before and after %s that are not ours", thousands(owned), thousands(b.opts.foreign)),
		"grows < 5 %", "%.1f / %.1f MiB, %+.1f %%", float64(before)/1024, float64(after)/1024, 100*float64(after-before)/float64(before))
	b.out.unless(20*(after-before) < before, "the agent's watches ask for our label alone, and no event of these objects reaches it: what it grew by is garbage of its own that was not collected yet.")
	b.resting = time.Now()
	return nil
}

func makeForeign(ctx context.Context, b *bed, n int) error {
	if _, err := b.edge.Plane.Kubectl(ctx, "create", "namespace", foreignNamespace); err != nil {
		return err
	}
	maps := b.edge.Plane.Client().CoreV1().ConfigMaps(foreignNamespace)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * writers)
	for i := range n {
		group.Go(func() error {
			_, err := maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%05d", i)},
				Data:       map[string]string{"filler": strings.Repeat("0123456789", 30)},
			}, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// atRest counts the agent's requests while nothing happened on its cluster, from
// the audit log, watches that go on apart.
func atRest(ctx context.Context, b *bed) error {
	if b.resting.IsZero() {
		return fmt.Errorf("nothing was measured that leaves the edge at rest: it needs %q or %q", "foreign", "many")
	}
	if err := pause(ctx, time.Until(b.resting.Add(b.opts.stretch))); err != nil {
		return err
	}
	end := time.Now()
	calls, watches := map[string]int{}, 0
	for event, err := range harness.Audit(b.edge.Plane.AuditLog(), harness.ByServiceAccountsOf(install.AgentNamespace), harness.Since(b.resting)) {
		switch {
		case err != nil:
			return err
		case event.Received.After(end):
		case event.Verb == "watch":
			if event.Stage != "ResponseComplete" {
				watches++
			}
		case event.Stage == "ResponseComplete":
			calls[event.Verb+" "+event.Object.Resource]++
		}
	}
	owned, err := ownedObjects(ctx, b.edge)
	if err != nil {
		return err
	}
	total := 0
	var parts []string
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		total += calls[call]
		parts = append(parts, fmt.Sprintf("%d %s", calls[call], call))
	}
	took := end.Sub(b.resting)
	b.out.add(fmt.Sprintf("API calls of the agent at rest with %s owned objects, from %.0f s", thousands(owned), took.Seconds()), "<= 0.1/s plus watches",
		"%.3f/s (%s), and %d watches begun anew", float64(total)/took.Seconds(), strings.Join(parts, ", "), watches)
	b.out.unless(float64(total)/took.Seconds() <= 0.1, "the calls are listed; the Lease of the pod that dials is one each 20 s.")
	return nil
}
