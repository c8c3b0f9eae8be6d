// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// quiet is how long is watched after all agents are back.
const quiet = 30 * time.Second

// away says where writes after a restart come from.
const away = "agents that are away for longer than 90 s are reported as not reachable, with their Releases, and as back later: one write each."

// comeBack kills a hub that has many agents, starts it again at once, and looks
// until all is as it was.
func comeBack(ctx context.Context, b *bed) error {
	// Control planes that nobody looks at any more take from what is measured.
	if err := b.closePlanes(); err != nil {
		return err
	}
	f, err := b.needFleet(ctx)
	if err != nil {
		return err
	}
	if len(f.running) == 0 {
		if _, err := f.connect(ctx, 0, f.opts.agents, "--rate", "300"); err != nil {
			return err
		}
	}
	if more := f.opts.releases - f.released; more > 0 {
		start := time.Now()
		if err := f.release(ctx, "small", more); err != nil {
			return err
		}
		took := time.Since(start)
		f.out.add(fmt.Sprintf("%d Releases of one object, %s agents, made and settled", more, thousands(f.agents())), "-",
			"%.0f s, %.0f/s", took.Seconds(), float64(more)/took.Seconds())
	}
	if err := f.untilQuiet(ctx); err != nil {
		return err
	}
	return f.restart(ctx)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// untilQuiet waits until nothing was written for a while, all Releases are Ready,
// and the hub's memory has had time to settle.
func (f *fleet) untilQuiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		before, err := f.revision(ctx)
		if err != nil {
			return err
		}
		if err := pause(ctx, quiet/2); err != nil {
			return err
		}
		now, err := f.revision(ctx)
		if err != nil {
			return err
		}
		if now == before {
			break
		}
	}
	ready, err := f.ready(ctx)
	if err == nil && ready != f.released {
		return fmt.Errorf("%d of %d Releases are Ready", ready, f.released)
	}
	return err
}

// restart is the kill, the start, and what is seen of both.
func (f *fleet) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	steady, err := memory(f.hub.PID(), "VmRSS")
	if err != nil {
		return err
	}
	before, err := f.now()
	if err != nil {
		return err
	}
	revision, err := f.revision(ctx)
	if err != nil {
		return err
	}
	written := f.count(ctx, revision)
	start := time.Now()
	if err := f.hub.Kill9(ctx); err != nil {
		return err
	}
	ready, err := f.start(ctx)
	if err != nil {
		return err
	}
	back := map[string]time.Duration{}
	shares := map[string]int{"50 %": f.agents() / 2, "99 %": (f.agents()*99 + 99) / 100, "all": f.agents()}
	if _, err := f.until(ctx, "come back", func(d done) bool {
		for share, n := range shares {
			if _, seen := back[share]; !seen && d.Current >= n {
				back[share] = time.Since(start)
			}
		}
		return d.Current == f.agents()
	}); err != nil {
		return err
	}
	if err := pause(ctx, quiet); err != nil {
		return err
	}
	peak, err := memory(f.hub.PID(), "VmHWM")
	if err != nil {
		return err
	}
	end, err := f.revision(ctx)
	if err != nil {
		return err
	}
	s, err := f.metrics(ctx)
	if err != nil {
		return err
	}
	now, err := f.now()
	if err != nil {
		return err
	}
	needless := [3]float64{
		s.sum("convoy_deliver_signed_orders_total"), float64(now.Accepted - before.Accepted),
		s.sum("convoy_report_writes_total", `kind="release"`, `result="written"`),
	}
	f.out.add(fmt.Sprintf("hub restart with %s Releases and %s Clusters: ready, all in the caches", thousands(f.released), thousands(f.agents())), "<= 30 s (20,000)",
		"%.1f s", ready.Seconds())
	f.out.unless(ready <= 30*time.Second, "the lists of Clusters and Releases are read and decoded while agents that were cut off dial already.")
	f.out.add("the same: orders signed anew, orders that agents took again, status writes of Releases", "0, 0, 0",
		"%.0f, %.0f, %.0f", needless[0], needless[1],
		needless[2])
	f.out.unless(needless == [3]float64{}, away)
	f.out.add(fmt.Sprintf("%s agents back after kill -9 of the hub: 50 %% / 99 %% / all", thousands(f.agents())), "99 % <= 90 s",
		"%.0f s / %.0f s / %.0f s", back["50 %"].Seconds(), back["99 %"].Seconds(), back["all"].Seconds())
	f.out.unless(back["99 %"] <= 90*time.Second, "two TLS handshakes an agent on both sides of two cores; who is not served within 10 s dials again, after a longer wait.")
	f.out.add("the same: etcd writes until "+quiet.String()+" later", "< 100", "%d%s", end-revision, written())
	f.out.unless(end-revision < 100, away)
	f.out.add("the same: resident memory of the hub, before / peak after", "-", "%d / %d MiB", steady>>10, peak>>10)
	f.out.add("the same: most dials of one agent within 10 s; dials in all", "<= 10; -", "%d (shortest pause %.1f s); %d", now.Crowd, now.Shortest, now.Dials-before.Dials)
	f.out.unless(now.Crowd <= 10, "waits are drawn evenly from zero up.")
	return nil
}

// count counts the writes to etcd from a revision on, by kind of object, until what
// it gives is called, which tells them.
func (f *fleet) count(ctx context.Context, revision int64) func() string {
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	kinds := map[string]int{}
	counting.Go(func() {
		for answer := range f.etcd.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
			for _, event := range answer.Events {
				_, kind, _ := strings.Cut(strings.TrimPrefix(string(event.Kv.Key), stored), "/") // after the group
				kind, _, _ = strings.Cut(kind, "/")
				kinds[kind]++
			}
		}
	})
	return func() string {
		cancel()
		counting.Wait()
		if len(kinds) == 0 {
			return ""
		}
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			parts = append(parts, fmt.Sprintf("%d %s", kinds[kind], kind))
		}
		return " (" + strings.Join(parts, ", ") + ")"
	}
}
