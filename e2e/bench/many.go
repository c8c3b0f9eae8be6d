// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/install"
)

// agentProfile says what a CPU profile of the agent shows while it applies.
const agentProfile = "A CPU profile of the agent while it applies many small Releases has no peak: between a tenth and a fifth each are the engine, the orders that it takes, the collector and HTTP/2; the rest is JSON and TLS."

// shared says who took what of the machine's cores in a time.
func shared(took, hub, agent time.Duration) string {
	cores := runtime.NumCPU()
	return fmt.Sprintf("of the %.0f s that %d cores have in that time the hub took %.0f and the agent %.0f; with them run two control planes, whose API servers and etcds make each write durable.",
		took.Seconds()*float64(cores), cores, hub.Seconds(), agent.Seconds())
}

// manyReleases: one cluster with many small Releases, all made at once.
func manyReleases(ctx context.Context, b *bed) error {
	const objects, goal = 4, 40 * time.Second
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	if err := content(ctx, b, "many", b.opts.many, objects); err != nil {
		return err
	}
	hub, err := watchAll(ctx, b.hub.Plane.Dynamic(), install.Releases)
	if err != nil {
		return err
	}
	defer hub.Stop()
	all := make([]*corev1alpha1.Release, 0, b.opts.many)
	for r := range b.opts.many {
		name := fmt.Sprintf("many-%03d", r)
		all = append(all, install.Release(namespace, name, b.edge.Name, "many", name))
	}
	hubBefore, err := cpu(b.hub.Pod.PID())
	if err != nil {
		return err
	}
	agentBefore, err := cpu(b.edge.Pod.PID())
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.hub.Create(ctx, all...); err != nil {
		return err
	}
	made := time.Since(start)
	end, err := await(ctx, hub, countTo(b.opts.many, "many-", isReady))
	if err != nil {
		return fmt.Errorf("all Ready: %w", err)
	}
	hubAfter, err := cpu(b.hub.Pod.PID())
	if err != nil {
		return err
	}
	agentAfter, err := cpu(b.edge.Pod.PID())
	if err != nil {
		return err
	}
	took := end.Sub(start)
	b.out.add(fmt.Sprintf("%s Releases of %d objects in one cluster: all Ready", thousands(b.opts.many), objects), "<= 40 s (1,000)",
		"%.0f s, %.0f/s; all made after %.1f s; CPU of the hub %.0f s, of the agent %.0f s",
		took.Seconds(), float64(b.opts.many)/took.Seconds(), made.Seconds(), (hubAfter - hubBefore).Seconds(), (agentAfter - agentBefore).Seconds())
	b.out.unless(took <= goal, shared(took, hubAfter-hubBefore, agentAfter-agentBefore)+" "+agentProfile)
	b.resting = time.Now()
	return nil
}
