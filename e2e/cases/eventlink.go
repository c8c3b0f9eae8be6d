// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// linkCut cuts what agents reach the hub by, for a while if the event says how long.
func (p *Player) linkCut(ctx context.Context, m []string) (string, error) {
	targets := p.linksOf(m[0])
	for _, t := range targets {
		t.link.set(true)
	}
	did := fmt.Sprintf("the link between the hub and the agent of %s was cut: its connections are closed, and new ones at once", clustersOf(targets))
	d, said := asked(m[1], m[2])
	if !said {
		return did, p.pass(ctx, quiet)
	}
	d, less := bounded(d)
	p.say("# %s, for %s%s\n", did, d, less)
	if err := p.pass(ctx, d); err != nil {
		return "", err
	}
	return p.linkWhole(ctx, targets)
}

func (p *Player) linkBack(ctx context.Context, m []string) (string, error) {
	targets := slices.DeleteFunc(p.linksOf(m[0]), func(t *target) bool { return !t.link.isCut() })
	if len(targets) == 0 {
		return "", nil
	}
	return p.linkWhole(ctx, targets)
}

// linksOf are the targets whose names are among the words of an event, or all.
func (p *Player) linksOf(words string) []*target {
	fields := strings.FieldsFunc(words, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) })
	named := slices.DeleteFunc(slices.Clone(p.targets), func(t *target) bool { return !slices.Contains(fields, t.cluster) })
	if len(named) == 0 {
		return p.targets
	}
	return named
}

func clustersOf(targets []*target) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.cluster
	}
	return strings.Join(names, ", ")
}

// linkWhole makes links whole and waits until each agent that runs has a session again.
func (p *Player) linkWhole(ctx context.Context, targets []*target) (string, error) {
	var tried []string
	for _, t := range targets {
		tried = append(tried, fmt.Sprintf("%s %d", t.cluster, t.link.set(false)))
	}
	began := time.Now()
	for _, t := range targets {
		if t.agentAway() {
			continue
		}
		if err := p.untilSession(ctx, t); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the link was made whole; connections that were tried meanwhile: %s; sessions are there again after %s",
		strings.Join(tried, ", "), time.Since(began).Round(100*time.Millisecond)), p.stillAll(ctx)
}

// untilSession waits until bytes flow both ways again, and the hub has the cluster.
func (p *Player) untilSession(ctx context.Context, t *target) error {
	limit := time.Now().Add(patience)
	for !t.link.carries() && time.Now().Before(limit) {
		if err := p.pass(ctx, pollPause); err != nil {
			return err
		}
	}
	if err := p.untilCluster(ctx, t, patience, ""); err != nil {
		if ctx.Err() != nil {
			return err
		}
		p.say("# Cluster %s is not Ready: %v\n", t.cluster, err)
	}
	return nil
}

// agentAway says whether the agent of a target does not run.
func (t *target) agentAway() bool {
	if t.agent == nil {
		return false
	}
	process := t.agent.Process()
	return process == nil || !process.Running()
}

// deaf says why nothing that is asked for comes to a target; empty: it does.
func (t *target) deaf() string {
	if why := t.unheard(); why != "" {
		return why
	}
	if t.apiStopped {
		return "its API server is stopped"
	}
	return ""
}

// unheard says why a target cannot be heard of; empty: it can.
func (t *target) unheard() string {
	switch {
	case t.link != nil && t.link.isCut():
		return "the link to it is cut"
	case t.agentAway():
		return "its agent is stopped"
	}
	return ""
}
