// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// calmWithin is how long an agent may take to give memory back after work: it looks
// every quarter of a minute, and does it once a minute at most.
const calmWithin = 80 * time.Second

// resident is what a process has of the machine's memory, in KiB.
type resident struct{ private, rss, peak int64 }

func residentOf(pid int) (r resident, err error) {
	for field, into := range map[string]*int64{"RssAnon": &r.private, "VmRSS": &r.rss, "VmHWM": &r.peak} {
		if *into, err = memory(pid, field); err != nil {
			return r, err
		}
	}
	return r, nil
}

func mib(kib int64) float64 { return float64(kib) / 1024 }

// agentMemory: what an agent takes that has nothing else to do, with the objects that
// the goal names.
func agentMemory(ctx context.Context, b *bed) error {
	const releases, objects = 70, 1000
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	pid := b.edge.Pod.PID()
	empty, err := residentOf(pid)
	if err != nil {
		return err
	}
	counts := make([]int, releases)
	for r := range counts {
		counts[r] = objects / releases
		if r < objects%releases {
			counts[r]++
		}
	}
	if err := contentOf(ctx, b, "memory", counts); err != nil {
		return err
	}
	all := make([]any, 0, releases)
	for r := range releases {
		name := fmt.Sprintf("memory-%03d", r)
		all = append(all, install.Release(namespace, name, b.edge.Name, "memory", name))
	}
	if err := b.hub.ApplyObjects(ctx, all...); err != nil {
		return err
	}
	for r := range releases {
		if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, fmt.Sprintf("memory-%03d", r), harness.HasCondition("Ready", "True", "")); err != nil {
			return err
		}
	}
	ready, rest, err := b.settled(ctx, b.edge)
	if err != nil {
		return err
	}
	b.out.add("agent memory, 70 Releases, 1,000 objects: private / RSS / peak", "<= 20 / 45 / 60 MiB",
		"%.0f / %.0f / %.0f MiB when all are Ready; %.0f / %.0f at rest", mib(ready.private), mib(ready.rss), mib(ready.peak), mib(rest.private), mib(rest.rss))
	b.out.unless(ready.private <= 20<<10 && ready.rss <= 45<<10 && ready.peak <= 60<<10, fmt.Sprintf("%.1f MiB private and %.0f MiB RSS were taken before the first Release, most of "+
		"the latter pages of the program itself. A heap profile shows 0.9 KiB for each object, 3.5 KiB for each Release (its order, signed and read) and 1.5 MiB of buffers of "+
		"compression, which are let go at rest; a Go process keeps garbage beside it, here up to 40 %% of what is live.", mib(empty.private), mib(empty.rss)))
	b.resting = time.Now()
	return nil
}

// settled reads what an agent takes now, and when it has given back what its work has
// left behind, if that is worth it to the agent.
func (b *bed) settled(ctx context.Context, edge *install.Edge) (now, rest resident, err error) {
	if now, err = residentOf(edge.Pod.PID()); err != nil {
		return now, rest, err
	}
	if err := untilCalm(ctx, edge); err != nil {
		return now, rest, err
	}
	rest, err = residentOf(edge.Pod.PID())
	return now, rest, err
}

func untilCalm(ctx context.Context, edge *install.Edge) error {
	const trims = "convoy_trim_trims_total"
	before, err := scrape(ctx, edge.MetricsURL())
	if err != nil {
		return err
	}
	for end := time.Now().Add(calmWithin); time.Now().Before(end); {
		if err := pause(ctx, 5*time.Second); err != nil {
			return err
		}
		now, err := scrape(ctx, edge.MetricsURL())
		if err != nil {
			return err
		}
		if now.sum(trims) > before.sum(trims) {
			return nil
		}
	}
	return nil
}

// ownedObjects counts the objects that an agent watches as its own.
func ownedObjects(ctx context.Context, edge *install.Edge) (int, error) {
	s, err := scrape(ctx, edge.MetricsURL())
	return int(s.sum("convoy_engine_objects")), err
}
