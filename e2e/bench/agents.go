// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// few agents are measured before all of them.
const few = 4000

// idleAgents: what agents that have nothing to do cost the hub and the line, and
// what a render that is pushed to them adds.
func idleAgents(ctx context.Context, b *bed) error {
	f, err := b.needFleet(ctx)
	if err != nil {
		return err
	}
	// Statuses that say who is connected are written once. What that leaves behind
	// ends with the process.
	if _, err := f.connect(ctx, 0, f.opts.agents, "--quick", "--rate", "400"); err != nil {
		return err
	}
	if err := f.disconnect(ctx); err != nil {
		return err
	}
	if err := f.hub.Kill9(ctx); err != nil {
		return err
	}
	if _, err := f.start(ctx); err != nil {
		return err
	}
	if err := pause(ctx, f.opts.rest); err != nil {
		return err
	}
	alone, err := f.usage(ctx)
	if err != nil {
		return err
	}
	first := min(few, f.opts.agents*2/5)
	took, err := f.connect(ctx, 0, first, "--rate", "200")
	if err != nil {
		return err
	}
	if err := pause(ctx, f.opts.rest); err != nil {
		return err
	}
	if _, err := f.addIdle(ctx, alone, took); err != nil {
		return err
	}
	if took, err = f.connect(ctx, first, f.opts.agents, "--rate", "200"); err != nil {
		return err
	}
	if err := idleLink(ctx, f); err != nil {
		return err
	}
	idle, err := f.addIdle(ctx, alone, took)
	if err != nil {
		return err
	}
	return push(ctx, f, alone, idle)
}

// addIdle tells what the hub has grown by for each agent since it was alone.
func (f *fleet) addIdle(ctx context.Context, alone usage, took time.Duration) (usage, error) {
	now, err := f.usage(ctx)
	if err != nil {
		return now, err
	}
	n := float64(f.agents())
	f.out.add(fmt.Sprintf("hub memory (private) per idle agent, %s agents, two TLS layers", thousands(f.agents())), "<= 40 KiB",
		"%.1f KiB: %.1f live on the heap, %.1f stacks of %.2f goroutines, the rest garbage and what the allocator keeps; all connected after %.0f s",
		(now.private-alone.private)/n, (now.heap-alone.heap)/n, (now.stacks-alone.stacks)/n, (now.goroutines-alone.goroutines)/n, took.Seconds())
	f.out.unless((now.private-alone.private)/n <= 40, "what is live of a session is two TLS connections: four ciphers (3.5 KiB), the buffers that their "+
		"handshakes left (7 KiB) and the agent's certificate (3 KiB), which the library keeps; the rest is garbage that was not collected yet, and what is lost between "+
		"small objects. The link alone, after forced collections (`go test -run NONE -bench HubMemory -benchtime 1x ./e2e/simagent`), takes "+
		"26 KiB with one TLS layer and 35 KiB with two: of the 35, 22 are heap, 2 the stack of one goroutine and 11 fragmentation.")
	return now, nil
}

// idleLink counts what goes over the websockets of agents that are left alone.
func idleLink(ctx context.Context, f *fleet) error {
	// Reports of the first minute, and windows that were opened, are not counted.
	if err := pause(ctx, f.opts.rest/3); err != nil {
		return err
	}
	before, err := f.now()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := pause(ctx, f.opts.stretch); err != nil {
		return err
	}
	now, err := f.now()
	if err != nil {
		return err
	}
	took := time.Since(start)
	day := func(n int64) float64 {
		return float64(n) / float64(f.agents()) * (24 * time.Hour).Seconds() / took.Seconds() / (1 << 20)
	}
	received, sent := day(now.Received-before.Received), day(now.Sent-before.Sent)
	f.out.add(fmt.Sprintf("bytes of an idle websocket per agent and day, from %.0f s of %s agents", took.Seconds(), thousands(f.agents())), "<= 0.5 MiB",
		"%.2f MiB; with the TLS outside it %.2f: %.2f to the agent, %.2f from it%s", day(now.Frames-before.Frames), received+sent, received, sent,
		dialed(now.Dials-before.Dials))
	f.out.unless(day(now.Frames-before.Frames) <= 0.5, "a ping with its answer each 25 s and a beat each 30 s; each is a frame inside TLS inside a frame.")
	return nil
}

func dialed(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; with %d dials", n)
}

// push gives agents a render of 1 MiB each.
func push(ctx context.Context, f *fleet, alone, idle usage) error {
	if f.opts.push == 0 {
		return nil
	}
	start := time.Now()
	if err := f.release(ctx, "large", f.opts.push); err != nil {
		return err
	}
	took := time.Since(start)
	if err := pause(ctx, 2*f.opts.rest); err != nil {
		return err
	}
	now, err := f.usage(ctx)
	if err != nil {
		return err
	}
	said, err := f.now()
	if err != nil {
		return err
	}
	n, pushed := float64(f.agents()), float64(min(f.opts.push, f.agents()))
	private := (idle.private-alone.private)/n + (now.private-idle.private)/pushed
	f.out.add(fmt.Sprintf("the same after a render of 1 MiB was pushed to %.0f of them, with its Release in the caches", pushed), "<= 50 KiB",
		"%.1f KiB: %.1f live on the heap, %.1f stacks; all settled after %.0f s, %.0f MiB/s, %d fetches tried again",
		private, (idle.heap-alone.heap)/n+(now.heap-idle.heap)/pushed,
		(idle.stacks-alone.stacks)/n+(now.stacks-idle.stacks)/pushed, took.Seconds(), pushed/took.Seconds(), said.FetchRetried)
	f.out.unless(private <= 50, "a heap profile after a push shows Releases, decoded, in the API server's watch cache, in its history of the "+
		"last writes and in the hub's cache; of sessions it shows as much as before the push.")
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
