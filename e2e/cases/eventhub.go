// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

func (p *Player) backedUp(ctx context.Context, _ []string) (string, error) {
	p.world.hubMu.Lock()
	defer p.world.hubMu.Unlock()
	if p.backup == "" {
		dir, err := os.MkdirTemp("", "convoy-backup-")
		if err != nil {
			return "", fmt.Errorf("back up: %w", err)
		}
		p.backup = dir
	}
	hub := p.world.Hub
	if p.hubRuns() {
		if err := hub.Stop(ctx); err != nil {
			return "", err
		}
	}
	if err := copyTree(ctx, hub.Dir, p.backup); err != nil {
		return "", err
	}
	return "the hub was stopped, its data folder copied, the hub started again", p.hubUp(ctx)
}

func (p *Player) restored(ctx context.Context, _ []string) (string, error) {
	if p.backup == "" {
		return "", nil
	}
	p.world.hubMu.Lock()
	defer p.world.hubMu.Unlock()
	hub := p.world.Hub
	if p.hubRuns() {
		if err := hub.Kill9(ctx); err != nil {
			return "", err
		}
	}
	if err := os.RemoveAll(hub.Dir); err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	if err := copyTree(ctx, p.backup, hub.Dir); err != nil {
		return "", err
	}
	for _, r := range p.releases {
		// What was asked since is forgotten.
		r.asked, r.commit = map[*target]string{}, ""
	}
	return "the hub was killed, its data folder put back as it was, the hub started again", p.hubUp(ctx)
}

func copyTree(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "-a", "-T", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

// hubUp starts the hub and waits until it has every agent that runs.
func (p *Player) hubUp(ctx context.Context) error {
	if err := p.world.Hub.Up(ctx); err != nil {
		return err
	}
	for _, t := range p.targets {
		if process := t.agent.Process(); process == nil || !process.Running() {
			continue
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		err := p.world.Hub.WaitCluster(wait, t.namespace, t.cluster)
		cancel()
		if err != nil && ctx.Err() == nil {
			p.say("# Cluster %s is not Ready: %v\n", t.cluster, err)
		}
	}
	// What the agents have to say comes with their sessions.
	return p.pass(ctx, quiet)
}

func (p *Player) hubStopped(ctx context.Context, _ []string) (string, error) {
	if !p.hubRuns() {
		return "nothing: the hub is stopped already", nil
	}
	return "the hub was stopped", p.world.Hub.Stop(ctx)
}

func (p *Player) hubStarted(ctx context.Context, _ []string) (string, error) {
	if p.hubRuns() {
		return "", nil
	}
	return "the hub was started", p.hubUp(ctx)
}

func (p *Player) hubKilled(ctx context.Context, _ []string) (string, error) {
	if !p.hubRuns() {
		return "the hub, which was stopped, was started", p.hubUp(ctx)
	}
	if err := p.world.Hub.Kill9(ctx); err != nil {
		return "", err
	}
	return "the hub was killed (signal 9) and started again", p.hubUp(ctx)
}
