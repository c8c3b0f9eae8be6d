// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/git"
)

func (c *Coordinator) readGit(repo *v1alpha1.GitRepository, w Want) (question, error) {
	wanted, err := wantRef(repo.Spec.Ref, w.Revision)
	if err != nil {
		return question{}, err
	}
	q := question{text: wanted.text, ask: func(ctx context.Context) (Revision, error) { return c.lookUpRef(ctx, repo, wanted) }}
	if wanted.commit != "" {
		q.known = &Revision{Display: commitPrefix + wanted.commit, Key: wanted.commit}
	}
	return q, nil
}

// lookUpRef lists the remote's refs. For a commit that says only that it answers.
func (c *Coordinator) lookUpRef(ctx context.Context, repo *v1alpha1.GitRepository, w wanted) (Revision, error) {
	remote, err := c.gitRemote(ctx, repo)
	if err != nil {
		return Revision{}, err
	}
	refs, err := git.Refs(ctx, remote, w.keep)
	if err != nil {
		return Revision{}, err
	}
	if w.commit != "" {
		return Revision{Display: commitPrefix + w.commit, Key: w.commit}, nil
	}
	name, commit, err := w.pick(refs)
	if err != nil {
		return Revision{}, err
	}
	return Revision{Display: name + "@" + commitPrefix + commit, Key: commit}, nil
}

func (c *Coordinator) gitJob(ctx context.Context, repo *v1alpha1.GitRepository, revision Revision) (fetchJob, error) {
	if !git.IsCommit(revision.Key) {
		return fetchJob{}, failure(v1alpha1.ReasonInvalid, "%q is no commit", revision.Key)
	}
	remote, err := c.gitRemote(ctx, repo)
	if err != nil {
		return fetchJob{}, err
	}
	return fetchJob{Git: &gitJob{Remote: remote, Commit: revision.Key}}, nil
}
