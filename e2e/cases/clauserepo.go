// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// bare is the folder of a Release's repository at the server.
func (p *Player) bare(r *release) string {
	return filepath.Join(p.world.gitDir(), p.source(r)+".git")
}

// commitOf is the commit that a step made, or what a word names by itself.
func (r *release) commitOf(word string) string {
	if commit, ok := r.commits[word]; ok {
		return commit
	}
	return word
}

func (p *Player) refBecomesTag(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	did := "the tag was there"
	if r.git(ctx, []string{"rev-parse", "-q", "--verify", "refs/tags/" + m[2]}) != nil {
		did = "the tag was made on the newest commit"
		if err := p.tag(ctx, r, m[2], m[1] != ""); err != nil {
			return "", err
		}
	}
	return did, p.aimNow(ctx, r, sourcev1alpha1.GitRef{Tag: m[2]})
}

// aimNow is aim for a ref that is at no commit that the case made last.
func (p *Player) aimNow(ctx context.Context, r *release, ref sourcev1alpha1.GitRef) error {
	r.commit = ""
	return p.aim(ctx, r, ref)
}

func (p *Player) refBecomesSemver(ctx context.Context, m []string) (string, error) {
	return "done", p.aimNow(ctx, p.releases[0], sourcev1alpha1.GitRef{Semver: strings.Trim(m[1], `"'`)})
}

func (p *Player) refBecomesCommit(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	return "done", p.aimNow(ctx, r, sourcev1alpha1.GitRef{Commit: r.commitOf(m[1])})
}

func (p *Player) refBecomesName(ctx context.Context, m []string) (string, error) {
	return "done", p.aimNow(ctx, p.releases[0], sourcev1alpha1.GitRef{Name: m[1]})
}

var listOfNames = regexp.MustCompile(`, | and `)

func (p *Player) tagsMade(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	on := "HEAD"
	if m[2] != "" {
		on = r.commitOf(m[2])
	}
	for _, name := range listOfNames.Split(m[1], -1) {
		if err := r.git(ctx, []string{"tag", "-f", name, on}, []string{"push", "-q", "--force", "origin", "refs/tags/" + name}); err != nil {
			return "", err
		}
	}
	return "pushed", p.follow(ctx, r)
}

func (p *Player) tagDeleted(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := r.git(ctx, []string{"tag", "-d", m[1]}, []string{"push", "-q", "origin", ":refs/tags/" + m[1]}); err != nil {
		return "", err
	}
	return "the remote has it no more", p.follow(ctx, r)
}

func (p *Player) pushedBack(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	to := "HEAD~1"
	if m[2] != "" {
		to = r.commitOf(m[2])
	}
	if err := r.git(ctx, []string{"reset", "-q", "--hard", to}, []string{"push", "-q", "--force", "origin", "HEAD:refs/heads/" + m[1]}); err != nil {
		return "", err
	}
	var err error
	if r.commit, err = r.repository.Head(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("its head is %.10s", r.commit), p.follow(ctx, r)
}

func (p *Player) defaultBranch(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := p.branch(ctx, r, m[1], m[1]); err != nil {
		return "", err
	}
	if err := r.git(ctx, []string{"--git-dir=" + p.bare(r), "symbolic-ref", "HEAD", "refs/heads/" + m[1]}); err != nil {
		return "", err
	}
	return "the branch was pushed, and is what HEAD of the remote is", p.follow(ctx, r)
}

const (
	aside = ".aside"
	moved = "-moved"
)

func (p *Player) repositoryGone(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	bare := p.bare(r)
	if err := os.Rename(bare, bare+aside); err != nil {
		return "", fmt.Errorf("repository: %w", err)
	}
	if !strings.HasPrefix(m[1], "empt") {
		return "the server has it no more", p.follow(ctx, r)
	}
	if err := r.git(ctx, []string{"init", "-q", "--bare", "-b", mainBranch, bare}); err != nil {
		return "", err
	}
	return "the server has one without any commit in its place", p.follow(ctx, r)
}

func (p *Player) repositoryBack(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	bare := p.bare(r)
	if _, err := os.Stat(bare + aside); err != nil {
		return "nothing: it was not taken away", nil //nolint:nilerr // that is said
	}
	if err := os.RemoveAll(bare); err != nil {
		return "", fmt.Errorf("repository: %w", err)
	}
	if err := os.Rename(bare+aside, bare); err != nil {
		return "", fmt.Errorf("repository: %w", err)
	}
	return "it is there as it was", p.follow(ctx, r)
}

// troubled answers requests for a Release's repository in the place of Git, on the server
// that the source leads to.
func (p *Player) troubled(r *release, answer func(http.ResponseWriter, *http.Request)) {
	name := p.source(r)
	before := func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasPrefix(strings.TrimPrefix(req.URL.Path, "/"), name+".git") {
			return false
		}
		answer(w, req)
		return true
	}
	if p.server != nil {
		p.server.Before(before)
		return
	}
	p.world.Git.Before(before)
}

func (p *Player) serverAnswers(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	code, err := strconv.Atoi(m[1])
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCase, err)
	}
	p.troubled(r, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	return "until it is said to be well again", p.follow(ctx, r)
}

func (p *Player) serverRedirects(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	name := p.source(r)
	to := "/" + name + moved + ".git"
	if strings.HasPrefix(m[1], "another") {
		to = "https://other.example.test" + to
	} else if err := os.Symlink(p.bare(r), filepath.Join(p.world.gitDir(), name+moved+".git")); err != nil && !os.IsExist(err) {
		return "", fmt.Errorf("redirect: %w", err)
	}
	p.troubled(r, func(w http.ResponseWriter, req *http.Request) {
		_, rest, _ := strings.Cut(req.URL.Path, name+".git")
		if req.URL.RawQuery != "" {
			rest += "?" + req.URL.RawQuery
		}
		w.Header().Set("Location", to+rest)
		w.WriteHeader(http.StatusMovedPermanently)
	})
	return "301 to " + to, p.follow(ctx, r)
}

func (p *Player) serverWell(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	if p.server != nil {
		if _, err := p.private(ctx, r); err != nil {
			return "", err
		}
	} else {
		p.world.Git.Before(nil)
	}
	return "it answers again", p.follow(ctx, r)
}
