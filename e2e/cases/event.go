// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// A happening is words that the player knows and what it does at them.
type happening struct {
	words *regexp.Regexp
	// do says what was done; an empty text means that the words were not meant.
	do func(p *Player, ctx context.Context, m []string) (string, error)
}

// happenings in the order in which they are tried; the first whose words are in the
// event is carried out.
func happenings() []happening {
	of := func(words string, do func(*Player, context.Context, []string) (string, error)) happening {
		return happening{regexp.MustCompile("(?i)" + words), do}
	}
	return []happening{
		of(`^clusters? (.+?) (?:register|registers|join|joins)\b`, (*Player).clustersRegister),
		of(`\b(?:someone|somebody|a user|a person|an operator) deletes the (\w+)(?: (\S+?))?(?: by hand)?(?:[ .,;]|$)`, (*Player).deletedByHand),
		of(`\bpermission to render nothing\b(?:.*?\bon top of (\S+))?`, (*Player).emptyAllowed),
		of(`\b(?:finalizer\b.*\bremoves? it|finalizers? (?:is|are) removed)`, (*Player).finalizersRemoved),
		of(`\breleases? (?:(\S+) )?(?:is|are) deleted\b`, (*Player).releaseDeleted),
		of(`\bhub\b.*\bbacked up\b|\bbackup of the hub\b`, (*Player).backedUp),
		of(`\bhub\b.*\brestored\b`, (*Player).restored),
		of(`\bold cluster\b.*\b(?:comes|is) back\b`, (*Player).oldClusterBack),
		of(`\bcluster\b.*\b(?:destroyed|made again|made anew|re-?created|reset)\b`, (*Player).clusterRemade),
		of(`\bagents? (?:is|are) (?:stopped|away)\b`, (*Player).agentStopped),
		of(`\bagents? (?:is|are) (?:killed|restarted)\b`, (*Player).agentKilled),
		of(`\bagents? (?:is started|are started|is back|are back|comes back|come back|starts again)\b`, (*Player).agentStarted),
		of(`\bhub (?:is|goes) (?:stopped|away|down)\b`, (*Player).hubStopped),
		of(`\bhub is (?:killed|restarted)\b`, (*Player).hubKilled),
		of(`\bhub (?:is back|comes back|is started)\b`, (*Player).hubStarted),
		of(`\bAPI server of (?:the )?(?:edge|cluster|target)\b.*\b(?:stopped|down|away)\b`, (*Player).apiServerStopped),
		of(`\bAPI server of (?:the )?(?:edge|cluster|target)\b.*\b(?:started|back)\b`, (*Player).apiServerStarted),
		of(`\b(?:a )?sync is (?:asked|requested|forced)\b`, (*Player).syncAsked),
		of(`^(\d+) (seconds?|minutes?) (?:pass|go by)\b`, (*Player).timePasses),
	}
}

// event carries out what it knows.
func (p *Player) event(ctx context.Context, s *Step) error {
	for _, h := range happenings() {
		m := h.words.FindStringSubmatch(s.What)
		if m == nil || len(p.targets) == 0 {
			continue
		}
		did, err := h.do(p, ctx, m)
		if err != nil {
			return err
		}
		if did == "" {
			continue
		}
		p.say("# CARRIED OUT: %s\n", did)
		if rest := strings.Trim(strings.Replace(s.What, m[0], "", 1), " ;,."); len(rest) > len("the ") {
			p.say("# the rest of the event's words is for you to weigh: %s\n", rest)
		}
		return nil
	}
	if known, err := p.told(ctx, s.What); known || err != nil {
		return err
	}
	p.say("# NOT CARRIED OUT: the player does not know these words\n")
	return nil
}

// named gives the Releases that an event means: by name, or the one touched last.
func (p *Player) named(name string) []*release {
	if name == "all" || len(p.releases) == 0 {
		return p.releases
	}
	if at := slices.IndexFunc(p.releases, func(r *release) bool { return r.name == name }); at >= 0 {
		return p.releases[at : at+1]
	}
	return p.releases[:1]
}

func (p *Player) releaseDeleted(ctx context.Context, m []string) (string, error) {
	var names []string
	for _, r := range p.named(m[1]) {
		for _, t := range p.targets {
			client := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace)
			err := client.Delete(ctx, r.name, metav1.DeleteOptions{})
			if refusal, ok := asRefusal(err); ok && !apierrors.IsNotFound(err) {
				return "the deletion of Release " + r.name + " was REFUSED: " + refusal, nil
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return "", err //nolint:wrapcheck // names the Release
			}
			wait, cancel := context.WithTimeout(ctx, p.opts.Rest)
			err = harness.WaitGone(wait, p.world.Hub.Plane.Dynamic(), install.Releases, t.namespace, r.name)
			cancel()
			if err != nil && ctx.Err() == nil {
				p.say("# Release %s on %s is not gone after %s\n", r.name, t.cluster, p.opts.Rest)
			}
		}
		r.deleted = true
		names = append(names, r.name)
	}
	return "Release " + strings.Join(names, ", ") + " deleted", nil
}

// kinds that an event may name by another word.
var words = map[string]string{"crd": "CustomResourceDefinition", "claim": "PersistentVolumeClaim"}

func (p *Player) deletedByHand(ctx context.Context, m []string) (string, error) {
	word, name := m[1], strings.Trim(m[2], ".,;")
	if kind, ok := words[strings.ToLower(word)]; ok {
		word = kind
	}
	if name == "by" || name == "first" {
		name = ""
	}
	var names []string
	for _, s := range p.seen {
		if !strings.EqualFold(s.gvk.Kind, word) || name != "" && s.name != name {
			continue
		}
		resource, err := s.cube.resource(s.cube.dynamic, s.gvk, s.namespace)
		if err != nil {
			return "", err
		}
		if err := resource.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return "", err //nolint:wrapcheck // names the object
		}
		names = append(names, s.String())
	}
	if len(names) == 0 {
		return "", nil
	}
	return strings.Join(names, ", ") + " deleted by hand", p.stillAll(ctx)
}

func (p *Player) emptyAllowed(ctx context.Context, m []string) (string, error) {
	if len(p.releases) == 0 {
		return "", nil
	}
	r := p.releases[0]
	did := "syncPolicy.prune.allowEmpty set on Release " + r.name
	if base := p.c.find(strings.Trim(m[1], ".,;")); base != nil {
		files, links, err := p.c.files(base)
		if err != nil {
			return "", err
		}
		if err := p.commit(ctx, r, base.Name+" again", files, links); err != nil {
			return "", err
		}
		r.step = base
		if r.content, err = p.c.spec(base, r.path); err != nil {
			return "", err
		}
		did += ", content of step " + base.Name + " again"
	}
	for _, t := range p.targets {
		_, err := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace).Patch(ctx, r.name, types.MergePatchType,
			[]byte(`{"spec":{"syncPolicy":{"prune":{"allowEmpty":true}}}}`), metav1.PatchOptions{})
		if err != nil {
			return "", err //nolint:wrapcheck // names the Release
		}
	}
	if err := p.publish(ctx, r); err != nil {
		return "", err
	}
	return did, p.settle(ctx, r)
}

func (p *Player) finalizersRemoved(ctx context.Context, _ []string) (string, error) {
	var names []string
	for _, s := range p.seen {
		object, err := s.cube.get(ctx, s.gvk, s.namespace, s.name)
		if err != nil {
			return "", err
		}
		if object == nil || object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) == 0 {
			continue
		}
		resource, err := s.cube.resource(s.cube.dynamic, s.gvk, s.namespace)
		if err != nil {
			return "", err
		}
		_, err = resource.Patch(ctx, s.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil {
			return "", err //nolint:wrapcheck // names the object
		}
		names = append(names, s.String())
	}
	if len(names) == 0 {
		return "", nil
	}
	return "finalizers of " + strings.Join(names, ", ") + " removed", p.stillAll(ctx)
}

func (p *Player) syncAsked(ctx context.Context, _ []string) (string, error) {
	for _, r := range p.releases {
		for _, t := range p.targets {
			if err := p.sync(ctx, t, r); err != nil {
				return "", err
			}
		}
		if err := p.settle(ctx, r); err != nil {
			return "", err
		}
	}
	return "a sync of every Release was asked for", nil
}

// longestPass bounds a wait that a case may ask for.
const longestPass = 15 * time.Minute

func (p *Player) timePasses(ctx context.Context, m []string) (string, error) {
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return "", nil //nolint:nilerr // too many digits to be meant
	}
	d := time.Duration(n) * time.Second
	if strings.HasPrefix(strings.ToLower(m[2]), "minute") {
		d = time.Duration(n) * time.Minute
	}
	d = min(d, longestPass)
	return "waited " + d.String(), p.pass(ctx, d)
}

// stillAll lets reports come in after something that no Release asked for.
func (p *Player) stillAll(ctx context.Context) error {
	for _, t := range p.targets {
		for _, r := range p.releases {
			if err := p.still(ctx, t, r); err != nil {
				return err
			}
		}
	}
	return nil
}

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
	if err := hub.Stop(ctx); err != nil {
		return "", err
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
	if err := hub.Kill9(ctx); err != nil {
		return "", err
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
	return "the hub was stopped", p.world.Hub.Stop(ctx)
}

func (p *Player) hubStarted(ctx context.Context, _ []string) (string, error) {
	if p.world.Hub.Process().Running() {
		return "", nil
	}
	return "the hub was started", p.hubUp(ctx)
}

func (p *Player) hubKilled(ctx context.Context, _ []string) (string, error) {
	if err := p.world.Hub.Kill9(ctx); err != nil {
		return "", err
	}
	return "the hub was killed (signal 9) and started again", p.hubUp(ctx)
}
