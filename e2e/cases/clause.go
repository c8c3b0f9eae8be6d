// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// A clause is a part of an event about content, a source or its remote: events of this
// kind tell several things in a row, and what comes of each is shown before the next.
type clause struct {
	words *regexp.Regexp
	// do carries it out and lets the Releases come to rest. It says what was done.
	do func(p *Player, ctx context.Context, m []string) (string, error)
}

func clauses() []clause {
	of := func(words string, do func(*Player, context.Context, []string) (string, error)) clause {
		return clause{regexp.MustCompile("(?i)^(?:the )?" + words), do}
	}
	return []clause{
		of(`ref is the (annotated )?tag (\S+)(?: on \S+)?$`, (*Player).refIsTag),
		of(`(?:a )?commit (\S+) is made$`, (*Player).commitMade),
		of(`tag (\S+) is (?:force-)?moved to it(?: \(as an? (lightweight|annotated) tag\))?$`, (*Player).tagMoved),
		of(`ref becomes branch (\S+)$`, (*Player).refBecomesBranch),
		of(`branch (\S+) with a tag of the same name on another commit$`, (*Player).branchAndTag),
		of(`ref changes from tag to branch (\S+) and back$`, (*Player).refChangesAndBack),
		of(`(?:a )?commit is pinned together with a branch\b`, (*Player).commitAndBranch),
		of(`branch (\S+) is force-pushed to an unrelated history$`, (*Player).forcePushed),
		of(`branch (\S+) is deleted$`, (*Player).branchDeleted),
		of(`ref becomes (?:the )?(annotated )?tag (\S+)$`, (*Player).refBecomesTag),
		of(`ref becomes (?:the )?semver(?: range)? (.+)$`, (*Player).refBecomesSemver),
		of(`ref becomes (?:the )?commit (?:of )?(?:step )?(\S+)$`, (*Player).refBecomesCommit),
		of(`ref becomes (refs/\S+)$`, (*Player).refBecomesName),
		of(`tags? ((?:[-\w.+/]+)(?:(?:, | and )[-\w.+/]+)*) (?:is|are) (?:made|pushed|created)(?: on (?:the commit of )?(?:step )?(\S+))?$`, (*Player).tagsMade),
		of(`tag (\S+) is deleted$`, (*Player).tagDeleted),
		of(`branch (\S+) is (?:force-)?(?:pushed|reset|moved) back to (?:an older commit|the commit before|(?:the )?(?:commit of )?(?:step )?(\S+))$`, (*Player).pushedBack),
		of(`branch (\S+) is force-pushed to (?:an older commit|the commit before|(?:the )?(?:commit of )(?:step )?(\S+))$`, (*Player).pushedBack),
		of(`default branch (?:changes to|becomes|is changed to|is now) (\S+)$`, (*Player).defaultBranch),
		of(`repository (?:is|becomes|is made) (empty|emptied)$`, (*Player).repositoryGone),
		of(`repository is (gone|deleted|removed|renamed|taken away|not there)(?: from the server)?$`, (*Player).repositoryGone),
		of(`repository is (?:back|there again|restored)$`, (*Player).repositoryBack),
		of(`(?:Git |source's |source )?server answers (?:with )?(?:an? )?(?:HTTP )?([345]\d\d)$`, (*Player).serverAnswers),
		of(`(?:Git |source's |source )?server (?:redirects|answers with a redirect)(?: to (another (?:host|server)|\S+))?$`, (*Player).serverRedirects),
		of(`(?:Git |source's |source )?server (?:answers again|is (?:well|fine|back)(?: again)?|answers (?:with )?200)$`, (*Player).serverWell),

		of(`token expires$`, (*Player).tokenExpires),
		of(`server's certificate is from a private CA that is not configured$`, (*Player).authorityUnknown),
		of(`configured$`, (*Player).authorityKnown),
		of(`server answers 429 with a retry time of (\d+) s$`, (*Player).serverLimits),
		of(`name does not resolve$`, (*Player).nameUnknown),
		of(`server accepts and never answers$`, (*Player).serverSilent),
		of(`credentials Secret is replaced with good ones$`, (*Player).credentialsReplaced),
		of(`repository gains (\S+ \S+ of history) and (\d+) files outside\b`, (*Player).repositoryGrows),

		of(`same chart, (?:but )?app/values\.yaml (?:is )?empty(?: and|,) (?:the )?numbers (?:are )?(in a values file|inline)\b`, (*Player).valuesElsewhere),
		of(`values\.(\S+) becomes (\S+?)(?: and values\.(\S+) makes Job (\S+) fail)?$`, (*Player).valuesBecome),
		of(`holder of finalizer (\S+) takes a minute to let the old (\S+) go$`, (*Player).finalizerHolder),
		of(`(?:Release's )?path becomes (\S+)`, (*Player).pathBecomes),
		of(`(?:its )?chart becomes (\S+)$`, (*Player).chartBecomes),
		of(`(?:a )?kustomization includes \.\./(\S+?),`, (*Player).kustomizationIncludes),
		of(`literals become (\S+) and the image becomes (\S+)$`, (*Player).literalsAndImage),
		of(`(image) becomes (\S+)$`, (*Player).literalsAndImage),
		of(`Release has a goTemplate patch that sets metadata\.labels\.(\S+) to the cluster's name\b(?:.*?\b(second one that sets an annotation)\b)?`, (*Player).patched),
		of(`first patch names a cluster value that this cluster does not have$`, (*Player).patchUnknown),
	}
}

var (
	// ends of a clause. Between values a comma and a word may stand too: those are read
	// by the clause itself.
	clauseEnd = regexp.MustCompile(`;\s*(?:then\s+)?|(?:,| and)\s+then\s+`)
	inTurn    = regexp.MustCompile(`^in turn\s*[-:]\s*`)
)

// clausesOf cuts an event's words.
func clausesOf(what string) []string {
	return clauseEnd.Split(inTurn.ReplaceAllString(strings.TrimSpace(what), ""), -1)
}

// told carries out what it knows of an event's clauses, and says whether it knew one.
func (p *Player) told(ctx context.Context, what string) (bool, error) {
	parts := clausesOf(what)
	known := false
	for _, part := range parts {
		known = known || meant(part) != nil
	}
	if !known || len(p.releases) == 0 {
		return false, nil
	}
	for _, part := range parts {
		if err := p.clause(ctx, part); err != nil {
			return true, err
		}
	}
	return true, nil
}

func meant(part string) *clause {
	for _, c := range clauses() {
		if c.words.MatchString(part) {
			return &c
		}
	}
	return nil
}

// clause carries out one, and says so.
func (p *Player) clause(ctx context.Context, part string) error {
	c := meant(part)
	if c == nil {
		p.say("# NOT CARRIED OUT: %s\n", part)
		return nil
	}
	if !p.hubRuns() {
		p.say("# NOT CARRIED OUT, since the hub is stopped: %s\n", part)
		return nil
	}
	did, err := c.do(p, ctx, c.words.FindStringSubmatch(part))
	if refusal, ok := refusedByHub(err); ok {
		p.say("# REFUSED by the hub: %s: %s\n", part, refusal)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	p.say("# CARRIED OUT: %s: %s\n", part, did)
	return nil
}
