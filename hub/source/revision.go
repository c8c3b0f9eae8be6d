// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"github.com/Masterminds/semver/v3"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/git"
)

const (
	branches      = "refs/heads/"
	tags          = "refs/tags/"
	fullRef       = "refs/"
	commitPrefix  = "sha1:"
	digestPrefix  = "sha256:"
	defaultBranch = "main"
)

// wanted is a ref that is looked for.
type wanted struct {
	commit string              // no look-up needed
	exact  []string            // full names, all of which are candidates
	semver *semver.Constraints // over tags
	words  string              // for messages: branch "main"
	text   string              // what the user wrote, part of the key
}

// commitHint is what a message adds to a ref that looks like a piece of a commit's name.
func commitHint(ref string) string {
	const shortest = 7 // as Git shortens them
	if len(ref) < shortest || len(ref) > 40 || strings.Trim(ref, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return "; a commit is named by all of its 40 hexadecimal digits, in lower case"
}

// wantRef reads the ref of a GitRepository, or the one that a Release gives in its place.
func wantRef(ref v1alpha1.GitRef, override string) (wanted, error) {
	switch {
	case git.IsCommit(override):
		return wanted{commit: override, text: override}, nil
	case strings.HasPrefix(override, fullRef):
		return wanted{exact: []string{override}, words: override, text: override}, nil
	case override != "":
		return wanted{exact: []string{branches + override, tags + override}, words: "branch or tag " + override + commitHint(override), text: "any " + override}, nil
	case ref.Name != "":
		if !strings.HasPrefix(ref.Name, fullRef) {
			return wanted{}, failure(v1alpha1.ReasonInvalid, "ref.name must be a ref in full, as in refs/heads/main")
		}
		return wanted{exact: []string{ref.Name}, words: "ref " + ref.Name, text: ref.Name}, nil
	case ref.Commit != "":
		if !git.IsCommit(ref.Commit) {
			return wanted{}, failure(v1alpha1.ReasonInvalid, "ref.commit must be 40 hexadecimal digits in lower case")
		}
		return wanted{commit: ref.Commit, text: ref.Commit}, nil
	case ref.Semver != "":
		constraint, err := semver.NewConstraint(ref.Semver)
		if err != nil {
			return wanted{}, failure(v1alpha1.ReasonInvalid, "ref.semver %q is no range of versions", ref.Semver)
		}
		return wanted{semver: constraint, words: "tag in the range " + ref.Semver, text: "semver " + ref.Semver}, nil
	case ref.Tag != "":
		return wanted{exact: []string{tags + ref.Tag}, words: "tag " + ref.Tag, text: "tag " + ref.Tag}, nil
	}
	branch := ref.Branch
	if branch == "" {
		branch = defaultBranch
	}
	return wanted{exact: []string{branches + branch}, words: "branch " + branch, text: "branch " + branch}, nil
}

// keep reports refs that may be the one.
func (w wanted) keep(name string) bool {
	if w.semver != nil {
		tag, ok := strings.CutPrefix(name, tags)
		if !ok {
			return false
		}
		version, err := semver.NewVersion(tag)
		return err == nil && w.semver.Check(version)
	}
	for _, exact := range w.exact {
		if name == exact {
			return true
		}
	}
	return false
}

// pick chooses among the refs that were kept.
func (w wanted) pick(refs []git.Ref) (name, commit string, err error) {
	if len(refs) == 0 {
		return "", "", failure(v1alpha1.ReasonRefNotFound, "ref not found: the repository has no %s", w.words)
	}
	if w.semver == nil {
		if len(refs) > 1 {
			return "", "", failure(v1alpha1.ReasonRefNotFound, "ref is ambiguous: %s and %s both exist; write the one that is meant in full", refs[0].Name, refs[1].Name)
		}
		return short(refs[0].Name), refs[0].Commit, nil
	}
	var best *semver.Version
	for _, ref := range refs {
		version, err := semver.NewVersion(strings.TrimPrefix(ref.Name, tags))
		if err != nil {
			continue // keep let none through that is no version
		}
		// Versions that differ in build metadata alone are equal: the longer name of
		// the two is taken, so that the choice does not hang on the server's order.
		if best == nil || version.GreaterThan(best) || version.Equal(best) && short(ref.Name) > name {
			best, name, commit = version, short(ref.Name), ref.Commit
		}
	}
	return name, commit, nil
}

func short(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, branches), tags)
}
