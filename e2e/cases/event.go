// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// snapshotTaken and snapshotRestored are words about all that a cluster has.
var (
	snapshotTaken    = regexp.MustCompile(`(?i)\b(?:snapshot|backup)\b.*\bof (?:the )?(?:managed )?(?:cluster|edge|etcd)\b(?:'s etcd)?.*\b(?:is|are) (?:taken|made)\b|\b(?:is|are) (?:taken|made) of (?:the )?(?:managed )?(?:cluster|edge|etcd)\b|\b(?:cluster|edge|etcd)\b.*\bis backed up\b|\b(?:cluster|edge|etcd)\b.*\bsnapshot is taken\b`)
	snapshotRestored = regexp.MustCompile(`(?i)^(?:then )?(?:the )?(?:managed |edge )?(?:cluster|edge|etcd)\b[^;]*\b(?:is|are) (?:restored|rolled back|put back|reset to (?:the|a) snapshot)\b.*`)
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
		of(`^repeat (\S+?)(?: and (\S+))? but (.+?) (?:first|in between)$`, (*Player).repeated),
		of(`\bfirst sync is cut off\b.*?\b(\w+) times\b`, (*Player).syncCutOff),
		of(`^(?:the )?cluster (\S+) is (?:removed|deleted)\b`, (*Player).clusterRemoved),
		of(`^(?:the )?(?:release (\S+?)(?:'s)? |release's )?spec\.([A-Za-z.]+) (?:becomes|is set to) (.+)$`, (*Player).specBecomes),
		of(`^(?:the )?(?:release (\S+?)(?:'s)? |release's )((?:targetNamespace|serviceAccountName|suspend|clusterWave|dependsOn|mutations|syncPolicy|deletionPolicy|drift|health|lifecycle|images|clusterRef)(?:\.[A-Za-z.]+)?) (?:becomes|is set to) (.+)$`, (*Player).specBecomes),
		of(`^(?:the )?release(?: (\S+))? is (suspended|resumed)\b`, (*Player).suspended),
		of(`\b(?:someone|somebody|a user|a person|an operator) deletes (?:the |its |an? )?(\w+)(?: (\S+?))?(?: by hand)?(?:[ .,;]|$)`, (*Player).deletedByHand),
		of(`^(?:then )?(?:the )?(\w+)(?: (\S+))? (?:is|gets) deleted (?:by hand|by someone|by somebody|by a user|with kubectl)\b`, (*Player).deletedByHand),
		of(`\bpermission to render nothing\b(?:.*?\bon top of (\S+))?`, (*Player).emptyAllowed),
		of(`\b(?:finalizer\b.*\bremoves? it|finalizers? (?:is|are) removed)`, (*Player).finalizersRemoved),
		of(`\b((?:(?:all|both|every|second) (?:the )?)?)releases?((?:,? (?:and )?[-a-z0-9]+)*?) (?:is|are) deleted\b`, (*Player).releaseDeleted),
		of(`\bhub\b.*\bbacked up\b|\bbackup of the hub\b`, (*Player).backedUp),
		of(`\bhub\b.*\brestored\b`, (*Player).restored),
		of(`\bold cluster\b.*\b(?:comes|is) back\b`, (*Player).oldClusterBack),
		of(`\bcluster\b.*\b(?:destroyed|made again|made anew|re-?created|reset)\b`, (*Player).clusterRemade),
		of(`^(?:then )?(?:the )?((?:hub|agents?|(?:edge's |cluster's )?API server)(?: of the (?:edge|cluster|target))?) (?:is|are|goes) (?:stopped|away|down|off) for (\w+) (seconds?|minutes?|hours?)\b`, (*Player).awayFor),
		of(snapshotTaken.String(), (*Player).clusterSaved),
		of(snapshotRestored.String(), (*Player).clusterRestored),
		of(`\bAPI server\b.*?\b(?:restarts|is restarted)\b(?: (\w+) times| (twice))?`, (*Player).apiServerRestarted),
		of(`\b(?:etcd|history|revisions?)\b.*\bcompact(?:ed|s|ion)\b|\bcompact(?:ed|ion)\b|\b410\b|\bwatch(?:es)?\b.*\b(?:expires?|too old)\b`, (*Player).compacted),
		of(`\bagents?(?:'s|')? (?:loses? its )?state(?: Secrets?)?\b(?: (?:is|are|was) (?:deleted|lost|removed|gone|wiped))?|\bstate Secrets?\b`, (*Player).agentStateLost),
		of(`\b(?:(?:a )?second agent|two agents|another agent|(?:a )?second (?:copy|replica) of the agent)\b`, (*Player).agentTwice),
		of(`\b(?:agents?(?:'s|')? )?(?:credentials?|identit(?:y|ies)|certificates?)\b.*\b(?:is|are) revoked\b|\bagents? (?:is|are) revoked\b`, (*Player).agentRevoked),
		of(`\bagents? (?:is|are) (?:killed|restarted) (\w+) times\b`, (*Player).agentKilledTimes),
		of(`\bagents? (?:is|are) (?:killed|restarted) (?:while|when|with) (?:the )?hub (?:is )?(?:away|down|stopped|off|gone)\b`, (*Player).agentKilledWithoutHub),
		of(`\bagents? (?:is|are) (?:stopped|away)\b`, (*Player).agentStopped),
		of(`\bagents? (?:is|are) (?:killed|restarted)\b`, (*Player).agentKilled),
		of(`\bagents? (?:is started|are started|is back|are back|comes back|come back|starts again)\b`, (*Player).agentStarted),
		of(`\bhub (?:is|goes) (?:stopped|away|down)\b`, (*Player).hubStopped),
		of(`\bhub is (?:killed|restarted)\b`, (*Player).hubKilled),
		of(`\bhub (?:is back|comes back|is started)\b`, (*Player).hubStarted),
		of(`\bAPI server of (?:the )?(?:edge|cluster|target)\b.*\b(?:stopped|down|away)\b`, (*Player).apiServerStopped),
		of(`\bAPI server of (?:the )?(?:edge|cluster|target)\b.*\b(?:started|back)\b`, (*Player).apiServerStarted),
		of(`^.*?\b(?:link|connection|network|session)s?\b.*\b(?:is|are|was|were) (?:cut|lost|broken|interrupted|partitioned)\b(?:.*?\bfor (\w+) (seconds?|minutes?|hours?)\b)?`, (*Player).linkCut),
		of(`^.*?\b(?:link|connection|network)s?\b.*\b(?:(?:is|are|comes?) (?:back|whole|restored|there)|is mended)\b`, (*Player).linkBack),
		of(`\b(?:a )?sync is (?:asked|requested|forced)\b`, (*Player).syncAsked),
		of(`^.*?\b(?:agents? (?:is|are|gets?) (?:cut off|disconnected|offline|partitioned|isolated)|agents? (?:loses? (?:its|the|their) (?:connection|network|link|session)|(?:cannot|can not|can no longer) reach)|network\b.*?\b(?:is|goes) (?:down|away|out)|hub (?:is|becomes) (?:unreachable|not reachable|cut off)|hub (?:cannot|can not) be reached|network partition)\b(?:.*?\bfor (\w+) (seconds?|minutes?|hours?)\b)?`, (*Player).linkCut),
		of(`^.*?\b(?:agents? reconnects?|agents? can reach|network\b.*\b(?:is up|comes up|recovers|heals)|hub is reachable|partition (?:heals|ends|is over))\b`, (*Player).linkBack),
		of(`\bAPI server (?:is|goes) (?:stopped|down|away)\b`, (*Player).apiServerStopped),
		of(`\bAPI server (?:is (?:started|back)|comes back|starts again)\b`, (*Player).apiServerStarted),
		of(`^(?:then )?(half an?|\w+) (seconds?|minutes?|hours?|days?|polls?|s|min|h) (?:pass(?:es)?|go(?:es)? by)\b`, (*Player).timePasses),
		of(`^(?:a )(few|several) (seconds?|minutes?|hours?|polls?) (?:pass(?:es)?|go(?:es)? by)\b`, (*Player).timePasses),
		of(`^(?:wait|waits?|waiting) (?:for )?(half an?|\w+) (seconds?|minutes?|hours?|days?|polls?)$`, (*Player).timePasses),
		of(`^(?:then )?(?:the )?(\w+)(?: (\S+?)) (?:is|gets|was) (?:deleted|removed)$`, (*Player).deletedByHand),
	}
}

// event carries out what it knows. One that tells several things that the player knows
// is carried out part by part, in the order told.
func (p *Player) event(ctx context.Context, s *Step) error {
	if parts := clausesOf(s.What); p.several(parts) {
		for _, part := range parts {
			if meant(part) != nil && len(p.releases) > 0 {
				if err := p.clause(ctx, part); err != nil {
					return err
				}
				continue
			}
			known, err := p.happens(ctx, part)
			if err != nil {
				return err
			}
			if !known {
				p.say("# NOT CARRIED OUT: %s\n", part)
			}
		}
		return nil
	}
	if known, err := p.happens(ctx, s.What); known || err != nil {
		return err
	}
	if known, err := p.told(ctx, s.What); known || err != nil {
		return err
	}
	p.say("# NOT CARRIED OUT: the player does not know these words\n")
	return nil
}

// several says whether more than one of the parts is known, and one of them is more
// than a clause about content.
func (p *Player) several(parts []string) bool {
	known, event := 0, false
	for _, part := range parts {
		is := slices.ContainsFunc(happenings(), func(h happening) bool { return h.words.MatchString(part) })
		event = event || is
		if is || meant(part) != nil {
			known++
		}
	}
	return event && known > 1
}

// happens carries out the first happening that the words mean, and says whether there
// is one.
func (p *Player) happens(ctx context.Context, what string) (bool, error) {
	for _, h := range happenings() {
		m := h.words.FindStringSubmatch(what)
		if m == nil || len(p.targets) == 0 {
			continue
		}
		did, err := h.do(p, ctx, m)
		if errors.Is(err, errHubStopped) {
			p.say("# NOT CARRIED OUT, since the hub is stopped: %s\n", what)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if did == "" {
			continue
		}
		p.say("# CARRIED OUT: %s\n", did)
		if rest := strings.Trim(strings.Replace(what, m[0], "", 1), " ;,."); len(rest) > len("the ") {
			p.say("# the rest of the event's words is for you to weigh: %s\n", rest)
		}
		return true, nil
	}
	return false, nil
}

func (p *Player) releaseDeleted(ctx context.Context, m []string) (string, error) {
	if !p.hubRuns() {
		return "", errHubStopped
	}
	var names, held []string
	about := m[1]
	if len(m) > 2 {
		about = quantity(m[1]) + " " + m[2]
	}
	for _, r := range p.named(about) {
		for _, t := range p.targets {
			client := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace)
			err := client.Delete(ctx, r.name, metav1.DeleteOptions{})
			if refusal, ok := asRefusal(err); ok && !apierrors.IsNotFound(err) {
				return "the deletion of Release " + r.name + " was REFUSED: " + refusal, nil
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return "", err //nolint:wrapcheck // names the Release
			}
			limit, why := p.opts.Rest, ""
			if deaf := t.deaf(); deaf != "" && calm < limit {
				limit, why = calm, ": "+deaf
			}
			wait, cancel := context.WithTimeout(ctx, limit)
			err = harness.WaitGone(wait, p.world.Hub.Plane.Dynamic(), install.Releases, t.namespace, r.name)
			cancel()
			if err != nil && ctx.Err() == nil {
				held = append(held, fmt.Sprintf("%s on %s is not gone after %s%s", r.name, t.cluster, limit, why))
			}
			delete(r.pending, t)
			delete(r.refused, t)
		}
		r.deleted = true
		names = append(names, r.name)
	}
	if len(names) == 0 {
		return "", nil // of a Release that is not there
	}
	if len(held) > 0 {
		return "the deletion of Release " + strings.Join(names, ", ") + " was asked for, and is NOT DONE yet: " + strings.Join(held, "; "), nil
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
	if len(names) == 0 && name != "" {
		var err error
		if names, err = p.deleteUnseen(ctx, word, name); err != nil {
			return "", err
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return strings.Join(names, ", ") + " deleted by hand", p.stillAll(ctx)
}

// deleteUnseen deletes an object of the case's namespace that no inventory and no step
// has named, such as a child of another.
func (p *Player) deleteUnseen(ctx context.Context, word, name string) (names []string, err error) {
	for _, t := range p.targets {
		if t.apiStopped {
			continue
		}
		gvk, err := t.cube.guess(word)
		if err != nil || !t.cube.namespaced(gvk) {
			continue // a word that is no kind
		}
		object, err := t.cube.get(ctx, gvk, p.c.Namespace(), name)
		if err != nil {
			return nil, err
		}
		if object == nil {
			continue
		}
		resource, err := t.cube.resource(t.cube.dynamic, gvk, p.c.Namespace())
		if err != nil {
			return nil, err
		}
		if err := resource.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, err //nolint:wrapcheck // names the object
		}
		names = append(names, gvk.Kind+" "+p.c.Namespace()+"/"+name)
	}
	return names, nil
}

func (p *Player) emptyAllowed(ctx context.Context, m []string) (string, error) {
	if len(p.releases) == 0 {
		return "", nil
	}
	if !p.hubRuns() {
		return "", errHubStopped
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
	if !p.hubRuns() {
		return "", errHubStopped
	}
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
