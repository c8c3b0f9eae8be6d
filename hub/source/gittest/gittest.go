// SPDX-License-Identifier: Apache-2.0

// Package gittest runs real Git servers in a test's own process: the other end of
// the first step of the flow source -> render -> store -> deliver -> apply ->
// observe -> report. Repositories are made with the git program; HTTP serves them
// through git http-backend, SSH through git upload-pack. Both listen on loopback.
package gittest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a bare repository with a work tree beside it.
type Repo struct {
	t    testing.TB
	dir  string // bare
	work string
}

// NewRepo makes an empty repository NAME.git under root, with the branch main.
func NewRepo(t testing.TB, root, name string) *Repo {
	t.Helper()
	r := &Repo{t: t, dir: filepath.Join(root, name+".git"), work: t.TempDir()}
	r.git("", "init", "--quiet", "--bare", "--initial-branch=main", r.dir)
	r.git("", "init", "--quiet", "--initial-branch=main", r.work)
	r.Git("remote", "add", "origin", r.dir)
	return r
}

// Git runs git in the work tree and gives its output.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.git(r.work, args...)
}

// Bare runs git in the bare repository.
func (r *Repo) Bare(args ...string) string {
	r.t.Helper()
	return r.git(r.dir, args...)
}

func (r *Repo) git(dir string, args ...string) string {
	r.t.Helper()
	// The test's context has ended when clean-up code runs, and git calls are short.
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+r.work,
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.test", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.test",
		"GIT_AUTHOR_DATE=2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2024-01-01T00:00:00Z")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String())
}

// Path of a file in the work tree.
func (r *Repo) Path(name string) string { return filepath.Join(r.work, filepath.FromSlash(name)) }

// Write writes a file of the work tree.
func (r *Repo) Write(name, content string) {
	r.t.Helper()
	path := r.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits the whole work tree, pushes the branch that is checked out, and
// gives the commit.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", message)
	r.Git("push", "--quiet", "--force", "origin", "HEAD")
	return r.Git("rev-parse", "HEAD")
}

// CommitFiles replaces the work tree by the files and commits.
func (r *Repo) CommitFiles(message string, files map[string]string) string {
	r.t.Helper()
	r.Git("rm", "-r", "--quiet", "--force", "--ignore-unmatch", ".")
	for name, content := range files {
		r.Write(name, content)
	}
	return r.Commit(message)
}

// Name of the repository in URLs: "name.git".
func (r *Repo) Name() string { return filepath.Base(r.dir) }

// ConfigMap is the text of a ConfigMap of about the given size.
func ConfigMap(name string, size int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {text: %q}\n", name, strings.Repeat("v", max(0, size-90)))
}

// Import makes a commit on the branch main out of files that never were on disk,
// all with the same content, and gives the commit. It is for many or large files.
func (r *Repo) Import(content string, names ...string) string {
	r.t.Helper()
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "blob\nmark :1\ndata %d\n%s\n", len(content), content)
	stream.WriteString("commit refs/heads/main\ncommitter t <t@example.test> 1700000000 +0000\ndata 6\nimport\n")
	for _, name := range names {
		fmt.Fprintf(&stream, "M 100644 :1 %s\n", name)
	}
	cmd := exec.CommandContext(r.t.Context(), "git", "-c", "core.compression=1", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = r.dir, &stream
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git fast-import: %v: %s", err, out)
	}
	return r.Bare("rev-parse", "refs/heads/main")
}
