// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// onePoll is how often the hub looks at a source of a case.
const onePoll = 10 * time.Second

// longestPass bounds a wait that a case may ask for.
const longestPass = 15 * time.Minute

// asked is a number, or a word for one, of a unit of time; false: it is none.
func asked(count, unit string) (time.Duration, bool) {
	if unit == "" {
		return 0, false
	}
	one := time.Second
	switch unit = strings.ToLower(unit); {
	case strings.HasPrefix(unit, "m"):
		one = time.Minute
	case strings.HasPrefix(unit, "h"):
		one = time.Hour
	case strings.HasPrefix(unit, "poll"):
		one = onePoll
	case strings.HasPrefix(unit, "d"):
		one = 24 * time.Hour
	}
	count = strings.ToLower(count)
	if strings.HasPrefix(count, "half") {
		return one / 2, true
	}
	n := slices.Index(counts, count)
	switch {
	case n >= 0:
	case count == "a", count == "an":
		n = 1
	case count == "few", count == "several", count == "some":
		n = 3
	case count == "twenty", count == "thirty", count == "sixty", count == "fifteen":
		n = map[string]int{"fifteen": 15, "twenty": 20, "thirty": 30, "sixty": 60}[count]
	default:
		var err error
		if n, err = strconv.Atoi(count); err != nil || n > 1_000_000 {
			return 0, false
		}
	}
	return time.Duration(n) * one, true
}

// bounded is what of a time is waited for, and words that say so if it is less.
func bounded(d time.Duration) (time.Duration, string) {
	if d <= longestPass {
		return d, ""
	}
	return longestPass, fmt.Sprintf(" (the case says %s; the player waits no longer than %s)", d, longestPass)
}

func (p *Player) timePasses(ctx context.Context, m []string) (string, error) {
	d, ok := asked(m[1], m[2])
	if !ok {
		return "", nil
	}
	d, less := bounded(d)
	return "waited " + d.String() + less, p.pass(ctx, d)
}

// awayFor stops something for a time, and starts it again.
func (p *Player) awayFor(ctx context.Context, m []string) (string, error) {
	d, ok := asked(m[2], m[3])
	if !ok {
		return "", nil
	}
	stop, start := (*Player).agentStopped, (*Player).agentStarted
	switch what := strings.ToLower(m[1]); {
	case strings.Contains(what, "api"):
		stop, start = (*Player).apiServerStopped, (*Player).apiServerStarted
	case strings.Contains(what, "hub"):
		stop, start = (*Player).hubStopped, (*Player).hubStarted
	}
	did, err := stop(p, ctx, nil)
	if err != nil {
		return "", err
	}
	d, less := bounded(d)
	p.say("# %s, for %s%s\n", did, d, less)
	if err := p.pass(ctx, d); err != nil {
		return "", err
	}
	return start(p, ctx, nil)
}

// latestKill is the latest moment of a kill after the one before it.
const latestKill = 4 * time.Second

// agentKilledTimes kills the agents again and again, at random moments.
func (p *Player) agentKilledTimes(ctx context.Context, m []string) (string, error) {
	times := slices.Index(counts, strings.ToLower(m[1]))
	if times < 0 {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > maxKills {
			return "", nil //nolint:nilerr // no number that is meant
		}
		times = n
	}
	var moments []string
	for range times {
		delay := rand.N(latestKill)
		if err := p.pass(ctx, delay); err != nil {
			return "", err
		}
		for _, t := range p.targets {
			if !t.agentAway() {
				if err := t.agent.Kill9(ctx); err != nil {
					return "", err
				}
			}
			if err := t.agent.Start(ctx); err != nil {
				return "", err
			}
		}
		moments = append(moments, delay.Round(10*time.Millisecond).String())
	}
	for _, t := range p.targets {
		if !p.hubRuns() || t.deaf() != "" {
			continue
		}
		if err := p.untilSession(ctx, t); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the agents were killed (signal 9) and started %d times, after %s", times, strings.Join(moments, ", ")), p.stillAll(ctx)
}

// agentKilledWithoutHub kills the agents while there is no hub, which is there again
// afterwards if it was before.
func (p *Player) agentKilledWithoutHub(ctx context.Context, m []string) (string, error) {
	ran := p.hubRuns()
	if ran {
		if err := p.world.Hub.Stop(ctx); err != nil {
			return "", err
		}
	}
	did, err := p.agentKilled(ctx, m)
	if err != nil {
		return "", err
	}
	if !ran {
		return "the hub is stopped; " + did, nil
	}
	if err := p.pass(ctx, 2*quiet); err != nil {
		return "", err
	}
	return "the hub was stopped; " + did + "; then the hub was started", p.hubUp(ctx)
}
