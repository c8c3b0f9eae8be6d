// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/e2e/install"
)

const mainBranch = "main"

// source is the name of a Release's GitRepository.
func (p *Player) source(r *release) string { return strings.ToLower(p.c.ID) + "--" + r.name }

// aim changes where the source of a Release leads to, and lets the Release follow.
func (p *Player) aim(ctx context.Context, r *release, ref sourcev1alpha1.GitRef) error {
	raw, err := json.Marshal(ref)
	if err != nil {
		return fmt.Errorf("ref: %w", err)
	}
	if err := p.change(ctx, r, fmt.Sprintf(`[{"op":"add","path":"/spec/ref","value":%s}]`, raw)); err != nil {
		return err
	}
	p.say("# ref of the source: %s\n", raw)
	return p.follow(ctx, r)
}

// change patches the source of a Release on every target.
func (p *Player) change(ctx context.Context, r *release, patch string) error {
	for _, t := range p.targets {
		client := p.world.Hub.Plane.Dynamic().Resource(install.GitRepositories).Namespace(t.namespace)
		if _, err := client.Patch(ctx, p.source(r), types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err //nolint:wrapcheck // names the source
		}
	}
	return nil
}

// follow asks for a sync and waits for what comes of it.
func (p *Player) follow(ctx context.Context, r *release) error {
	for _, t := range p.targets {
		if err := p.sync(ctx, t, r); err != nil {
			return err
		}
	}
	return p.settle(ctx, r)
}

// marked puts a word where the content has a place for it, key at of a ConfigMap, and
// commits that on the branch that is checked out.
func (p *Player) marked(ctx context.Context, r *release, word string) error {
	place := regexp.MustCompile(`\bat: [^},\n]+`)
	err := filepath.WalkDir(r.repository.Dir(), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		return os.WriteFile(path, place.ReplaceAll(text, []byte(`at: "`+word+`"`)), 0o644)
	})
	if err != nil {
		return fmt.Errorf("work tree: %w", err)
	}
	if err := r.repository.Git(ctx, "add", "-A"); err != nil {
		return err
	}
	if err := r.repository.Git(ctx, "commit", "-q", "--allow-empty", "-m", word); err != nil {
		return err
	}
	if r.commit, err = r.repository.Head(ctx); err != nil {
		return err
	}
	return nil
}

// each runs git several times.
func (r *release) git(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if err := r.repository.Git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (p *Player) tag(ctx context.Context, r *release, name string, annotated bool) error {
	args := []string{"tag", "-f", name}
	if annotated {
		args = []string{"tag", "-f", "-a", "-m", "release " + name, name}
	}
	return r.git(ctx, args, []string{"push", "-q", "--force", "origin", "refs/tags/" + name})
}

// branch makes one whose content has a word of its own, and goes back to where it was.
func (p *Player) branch(ctx context.Context, r *release, name, word string) error {
	if err := r.git(ctx, []string{"checkout", "-q", "-B", name}); err != nil {
		return err
	}
	if err := p.marked(ctx, r, word); err != nil {
		return err
	}
	return r.git(ctx, []string{"push", "-q", "--force", "origin", "refs/heads/" + name}, []string{"checkout", "-q", mainBranch})
}

func (p *Player) refIsTag(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := p.tag(ctx, r, m[2], m[1] != ""); err != nil {
		return "", err
	}
	return "the tag was pushed", p.aim(ctx, r, sourcev1alpha1.GitRef{Tag: m[2]})
}

func (p *Player) commitMade(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := p.marked(ctx, r, m[1]); err != nil {
		return "", err
	}
	return fmt.Sprintf("it is %.10s", r.commit), r.git(ctx, []string{"push", "-q", "--force", "origin", mainBranch})
}

func (p *Player) tagMoved(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := p.tag(ctx, r, m[1], m[2] == "annotated"); err != nil {
		return "", err
	}
	return "the tag was pushed", p.follow(ctx, r)
}

func (p *Player) refBecomesBranch(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := p.branch(ctx, r, m[1], m[1]); err != nil {
		return "", err
	}
	return "the branch was pushed", p.aim(ctx, r, sourcev1alpha1.GitRef{Branch: m[1]})
}

func (p *Player) branchAndTag(ctx context.Context, m []string) (string, error) {
	r, name := p.releases[0], m[1]
	if err := p.marked(ctx, r, "tag-"+name); err != nil {
		return "", err
	}
	if err := p.tag(ctx, r, name, false); err != nil {
		return "", err
	}
	if err := p.branch(ctx, r, name, "branch-"+name); err != nil {
		return "", err
	}
	if err := p.aim(ctx, r, sourcev1alpha1.GitRef{Tag: name}); err != nil {
		return "", err
	}
	return "at is tag-" + name + " in the tag and branch-" + name + " in the branch; the tag was meant first, then the branch", p.aim(ctx, r, sourcev1alpha1.GitRef{Branch: name})
}

func (p *Player) refChangesAndBack(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := r.git(ctx, []string{"push", "-q", "--force", "origin", mainBranch}); err != nil {
		return "", err
	}
	for _, ref := range []sourcev1alpha1.GitRef{{Tag: "v1"}, {Branch: m[1]}, {Tag: "v1"}} {
		if err := p.aim(ctx, r, ref); err != nil {
			return "", err
		}
	}
	return "each was waited for", nil
}

func (p *Player) commitAndBranch(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	if err := p.branch(ctx, r, "aside", "aside"); err != nil {
		return "", err
	}
	ref := sourcev1alpha1.GitRef{Branch: mainBranch, Commit: r.commit}
	err := p.aim(ctx, r, ref)
	if refusal, ok := asRefusal(err); ok {
		return "REFUSED: " + refusal, nil
	}
	return "accepted", err
}

func (p *Player) forcePushed(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := p.aim(ctx, r, sourcev1alpha1.GitRef{Branch: m[1]}); err != nil {
		return "", err
	}
	if err := r.git(ctx, []string{"checkout", "-q", "--orphan", "unrelated"}); err != nil {
		return "", err
	}
	if err := p.marked(ctx, r, "force"); err != nil {
		return "", err
	}
	if err := r.git(ctx, []string{"push", "-q", "--force", "origin", "unrelated:" + m[1]}); err != nil {
		return "", err
	}
	return fmt.Sprintf("its head is %.10s, with at force", r.commit), p.follow(ctx, r)
}

func (p *Player) branchDeleted(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if err := r.git(ctx, []string{"push", "-q", "origin", ":refs/heads/" + m[1]}); err != nil {
		return "", err
	}
	return "the remote has it no more", p.follow(ctx, r)
}
