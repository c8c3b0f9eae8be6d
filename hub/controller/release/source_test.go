// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source"
	sourcesnapshot "kumodo.io/convoy/hub/source/snapshot"
	"kumodo.io/convoy/hub/store"
)

// git is a remote: one file for each path and commit.
type git struct {
	mu      sync.Mutex
	commit  string
	content map[string]string // path -> text, at the newest commit
	failing error
	asked   int
}

func (g *git) push(commit string, content map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commit, g.content = commit, maps.Clone(content)
}

func (g *git) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = err
}

func (g *git) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

type reasoned struct {
	reason string
	error
}

func (r reasoned) Reason() string { return r.reason }

// Resolve remembers nothing: each call that may not take any age asks.
func (g *git) Resolve(_ context.Context, _ source.Want, maxAge time.Duration) (source.Revision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if maxAge == 0 {
		g.asked++
	}
	return source.Revision{Display: "main@sha1:" + g.commit, Key: g.commit}, g.failing
}

func (g *git) Check(context.Context, sourcev1alpha1.Source) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return "main@sha1:" + g.commit, g.failing
}

func (g *git) Snapshot(context.Context, source.Want, source.Revision) (render.Source, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return snapshot(maps.Clone(g.content)), nil
}

type snapshot map[string]string

func (s snapshot) Part([]string) (io.ReadCloser, error) {
	return nil, errors.New("nobody reads it here")
}

func (s snapshot) Kind(string) (sourcesnapshot.Kind, error) { return sourcesnapshot.Folder, nil }

func (s snapshot) InputDigest(path string) (string, error) {
	text, ok := s[path]
	if !ok {
		return "", reasoned{corev1alpha1.ReasonPathNotFound, fmt.Errorf("%s does not exist", path)}
	}
	return "digest of " + text, nil
}

func (*git) Others(source.Want, source.Revision, []string, []string) release.Others { return nil }

// renderer turns a text into a digest of its own; "bad..." fails, "" is empty. What
// follows "reads " in a text are the facts that it reads, and "warns " a warning.
type renderer struct {
	mu    sync.Mutex
	count int
}

func (*renderer) InputsHash(_ context.Context, job render.Job, reads []string) (string, error) {
	digest, err := job.Snapshot.InputDigest(job.Content.Content.Path)
	hash := digest + " " + job.Content.Namespace
	for _, values := range job.Content.Values {
		hash += " " + values.Text
	}
	for _, mutation := range job.Content.Mutations {
		hash += " " + strings.Join(mutation.Bodies, " ")
	}
	for _, name := range reads {
		value, _ := job.Content.World.Value(name)
		hash += " " + name + "=" + value
	}
	return hash, err
}

func (r *renderer) Render(ctx context.Context, job render.Job) (render.Result, error) {
	r.mu.Lock()
	r.count++
	r.mu.Unlock()
	text := job.Snapshot.(snapshot)[job.Content.Content.Path]
	var reads []string
	if before, facts, ok := strings.Cut(text, " reads "); ok {
		text, reads = before, strings.Fields(facts)
	}
	var warnings []string
	if before, warning, ok := strings.Cut(text, " warns "); ok {
		text, warnings = before, []string{warning}
	}
	hash, err := r.InputsHash(ctx, job, reads)
	if err != nil {
		return render.Result{}, err
	}
	for _, name := range reads {
		value, _ := job.Content.World.Value(name)
		text += value
	}
	for _, values := range job.Content.Values {
		text += values.Text
	}
	result := render.Result{InputsHash: hash, Reads: reads, Warnings: warnings, Count: 3, Objects: store.Descriptor{Digest: digest(text), Size: 10}, Chart: job.Content.Content.Path}
	switch {
	case strings.HasPrefix(text, "bad"):
		return render.Result{}, reasoned{corev1alpha1.ReasonRenderFailed, errors.New("app.yaml: document 1: line 3: not YAML")}
	case text == "" && job.Content.AllowEmpty:
		result.Count, result.Objects.Digest = 0, digest("nothing")
	case text == "":
		result.Count = 0
	}
	return result, nil
}

func (r *renderer) made() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

func digest(text string) string {
	if len(text) > sha256.Size {
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
	}
	return fmt.Sprintf("sha256:%064x", []byte(text))
}
