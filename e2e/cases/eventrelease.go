// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// named gives the Releases that an event means: all that it names, all of them if it
// says so, the only or the first one if it names none. Of one that names a Release that
// is not there, none.
func (p *Player) named(names string) []*release {
	var out []*release
	unknown := false
	for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' }) {
		switch strings.ToLower(name) {
		case "and", "the", "release", "releases", "of", "them":
			continue
		case "all", "both", "every":
			return p.releases
		case "second":
			return p.releases[min(1, len(p.releases)):min(2, len(p.releases))]
		}
		at := slices.IndexFunc(p.releases, func(r *release) bool { return r.name == name })
		unknown = unknown || at < 0
		if at >= 0 {
			out = append(out, p.releases[at])
		}
	}
	if len(out) == 0 && !unknown {
		return p.releases[:min(1, len(p.releases))]
	}
	return out
}

// quantity is the word of a text that says how many, or which.
func quantity(text string) string {
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if slices.Contains([]string{"all", "both", "every", "second"}, word) {
			return word
		}
	}
	return ""
}

// repeated plays one step again, or two, with something that happens in between.
func (p *Player) repeated(ctx context.Context, m []string) (string, error) {
	var again []*Step
	for _, name := range m[1:3] {
		if name == "" {
			continue
		}
		s := p.c.find(name)
		if s == nil || s.Do != doRender && s.Do != doFiles {
			return "", nil
		}
		again = append(again, s)
	}
	last := len(again) - 1
	for i, s := range again {
		if i == last {
			known, err := p.happens(ctx, m[3])
			if err != nil {
				return "", err
			}
			if !known {
				p.say("# NOT CARRIED OUT: %s\n", m[3])
			}
		}
		if err := p.content(ctx, s); err != nil {
			return "", err
		}
	}
	return "played again, with that before " + again[last].Name, nil
}

// specBecomes sets a field of a Release's spec.
func (p *Player) specBecomes(ctx context.Context, m []string) (string, error) {
	value, err := readValue(m[3])
	if err != nil {
		return "", fmt.Errorf("%w: spec.%s: %w", ErrCase, m[2], err)
	}
	fields := strings.Split(m[2], ".")
	for _, field := range slices.Backward(fields) {
		value = map[string]any{field: value}
	}
	return p.changed(ctx, m[1], map[string]any{"spec": value}, "spec."+m[2]+" set")
}

func (p *Player) suspended(ctx context.Context, m []string) (string, error) {
	return p.changed(ctx, m[1], map[string]any{"spec": map[string]any{"suspend": m[2] == "suspended"}}, m[2])
}

// changed changes Releases, and lets what comes of it come in.
func (p *Player) changed(ctx context.Context, name string, patch map[string]any, what string) (string, error) {
	if !p.hubRuns() {
		return "", errHubStopped
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	var names []string
	for _, r := range p.named(name) {
		for _, t := range p.targets {
			if before, ok := r.refused[t]; ok {
				r.refused[t] = append(before, patch)
				p.say("# the hub has refused to make Release %s: it is asked again, with this change\n", r.name)
				if err := p.publishOn(ctx, t, r); err != nil {
					return "", err
				}
				continue
			}
			_, err := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace).Patch(ctx, r.name, types.MergePatchType, raw, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
			if refusal, ok := asRefusal(err); ok {
				return "a change of Release " + r.name + " was REFUSED: " + refusal, nil
			}
			if err != nil {
				return "", err //nolint:wrapcheck // names the Release
			}
		}
		names = append(names, r.name)
	}
	if len(names) == 0 {
		return "", nil
	}
	return "Release " + strings.Join(names, ", ") + ": " + what, p.stillAll(ctx)
}

// clusterRemoved deletes a Cluster from the hub. What it runs is left to it.
func (p *Player) clusterRemoved(ctx context.Context, m []string) (string, error) {
	at := slices.IndexFunc(p.targets, func(t *target) bool { return t.cluster == m[1] })
	if at < 0 {
		return "", nil
	}
	if !p.hubRuns() {
		return "", errHubStopped
	}
	t := p.targets[at]
	hub := p.world.Hub.Plane.Dynamic()
	err := hub.Resource(install.Clusters).Namespace(t.namespace).Delete(ctx, t.cluster, metav1.DeleteOptions{})
	if refusal, ok := asRefusal(err); ok && !apierrors.IsNotFound(err) {
		return "the deletion of Cluster " + t.cluster + " was REFUSED: " + refusal, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err //nolint:wrapcheck // names the Cluster
	}
	wait, cancel := context.WithTimeout(ctx, p.opts.Rest)
	defer cancel()
	if err := harness.WaitGone(wait, hub, install.Clusters, t.namespace, t.cluster); err != nil && ctx.Err() == nil {
		p.say("# Cluster %s is not gone after %s\n", t.cluster, p.opts.Rest)
	}
	return "Cluster " + t.cluster + " deleted from the hub", p.stillAll(ctx)
}

// counts are numbers that are written out.
var counts = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}

// latestCut is the latest moment of a power loss after a Release was made.
const latestCut = 400 * time.Millisecond

// syncCutOff kills the agents at random moments of the first sync of each Release, made
// anew each time, and lets it come to rest.
func (p *Player) syncCutOff(ctx context.Context, m []string) (string, error) {
	times := slices.Index(counts, strings.ToLower(m[1]))
	if len(p.releases) == 0 || times < 1 {
		return "", nil
	}
	for _, r := range p.releases {
		for range times {
			if _, err := p.releaseDeleted(ctx, []string{"", "", r.name}); err != nil {
				return "", err
			}
			if err := p.publish(ctx, r); err != nil {
				return "", err
			}
			delay := rand.N(latestCut)
			if err := p.pass(ctx, delay); err != nil {
				return "", err
			}
			if _, err := p.agentKilled(ctx, nil); err != nil {
				return "", err
			}
			p.say("# the agent was killed %s after Release %s was made, and started again\n", delay.Round(time.Millisecond), r.name)
			if err := p.settle(ctx, r); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%s times the Releases were made anew on this cluster, and the agent killed (signal 9) during the first sync", m[1]), nil
}
