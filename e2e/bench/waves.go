// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// waves of one Release, and waveRounds in which all of them change.
	waves      = 10
	waveRounds = 10
)

// changedWaves: a change of every wave of a Release, each healthy at once, from the
// change on the hub until the last wave is there, and until the Release is Ready.
func changedWaves(ctx context.Context, b *bed) error {
	const goal = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	repo, err := b.git.Repository(ctx, "waves")
	if err != nil {
		return err
	}
	files := map[string]string{}
	for round := range waveRounds + 1 {
		for wave := range waves {
			files[fmt.Sprintf("round-%d/%d.yaml", round, wave)] = fmt.Sprintf(
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wave-%d, annotations: {convoy.kumodo.io/sync-wave: %q}}\ndata: {round: %q}\n",
				wave, fmt.Sprint(wave), fmt.Sprint(round))
		}
	}
	if _, err := repo.Commit(ctx, "content", files); err != nil {
		return err
	}
	if err := b.hub.Source(ctx, b.git, namespace, "waves", metav1.Duration{Duration: time.Hour}); err != nil {
		return err
	}
	if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.GitRepositories, namespace, "waves", harness.HasCondition("Ready", "True", "")); err != nil {
		return err
	}
	if err := b.hub.Create(ctx, install.Release(namespace, "waves", b.edge.Name, "waves", "round-0")); err != nil {
		return err
	}
	if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, "waves", readyAt(1)); err != nil {
		return err
	}
	var there, ready []time.Duration
	for round := range waveRounds {
		last, all, err := changeWaves(ctx, b, round+1)
		if err != nil {
			return err
		}
		there, ready = append(there, last), append(ready, all)
	}
	b.out.add(fmt.Sprintf("%d changed waves, each healthy at once: the last there / Ready on the hub", waves), "<= 2 s",
		"p50 %s / %s, the slowest of %d %s / %s", millis(quantile(there, 0.5)), millis(quantile(ready, 0.5)),
		waveRounds, millis(quantile(there, 1)), millis(quantile(ready, 1)))
	b.out.unless(quantile(ready, 0.5) <= goal, "a wave is begun when a watch of the edge has shown all of the one before it healthy: ten times a dry run, an apply and an event, one after the other.")
	return nil
}

// changeWaves changes all waves once.
func changeWaves(ctx context.Context, b *bed, round int) (there, ready time.Duration, err error) {
	edge, err := watchAll(ctx, b.edge.Plane.Dynamic(), configMaps)
	if err != nil {
		return 0, 0, err
	}
	defer edge.Stop()
	start := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"content":{"path":"round-%d"}}}`, round)
	changed, err := b.hub.Plane.Dynamic().Resource(install.Releases).Namespace(namespace).Patch(ctx, "waves", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return 0, 0, err
	}
	last := fmt.Sprintf("wave-%d", waves-1)
	end, err := await(ctx, edge, func(u *unstructured.Unstructured) bool {
		value, _, err := unstructured.NestedString(u.Object, "data", "round")
		return err == nil && u.GetName() == last && value == fmt.Sprint(round)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("the last wave: %w", err)
	}
	if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, "waves", readyAt(changed.GetGeneration())); err != nil {
		return 0, 0, err
	}
	return end.Sub(start), time.Since(start), nil
}

// readyAt says whether a Release is Ready at a generation.
func readyAt(generation int64) harness.Condition {
	return func(u *unstructured.Unstructured) (bool, error) {
		conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		if err != nil {
			return false, err
		}
		for _, c := range conditions {
			condition, ok := c.(map[string]any)
			if ok && condition["type"] == "Ready" && condition["status"] == "True" {
				observed, ok := condition["observedGeneration"].(int64)
				return ok && observed >= generation, nil
			}
		}
		return false, nil
	}
}
