// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/objects"
	"kumodo.io/convoy/kubectl-convoy/offline"
	"kumodo.io/convoy/pkg/manifest"
)

// renderJob is all that a render is told. What is in files of other people is read and
// worked on in a process under limits, and only its output comes back.
type renderJob struct {
	// File with the Release, and its Text.
	File string
	Text []byte
	// Name of the Release in it, Namespace of one that names none; Forced: a person said
	// that namespace.
	Name, Namespace string
	Forced          bool

	Source, Output  string
	Values, Against given
	Cluster, Images []string

	ClusterName, KubeVersion string
	APIVersions              []string
	ImagesAsIs               bool
}

// given is a file or folder. Of a pipe, which the other process does not have, it is
// what was read.
type given struct {
	Path  string
	Piped bool
	Text  []byte
}

// run has the render made, and prints what it gave.
func (r *renderJob) run(ctx context.Context, limits offline.Limits, streams genericiooptions.IOStreams) error {
	if r.File == "" {
		return errNoFile
	}
	if err := objects.Check(r.Output); err != nil {
		return err
	}
	if err := r.read(ctx, streams.In); err != nil {
		return err
	}
	answer, err := offline.Work(ctx, limits, r)
	if err != nil {
		return fmt.Errorf("rendering the Release of %s: %w", r.File, err)
	}
	if _, err := streams.ErrOut.Write(answer.Said); err != nil {
		return err
	}
	if _, err := streams.Out.Write(answer.Out); err != nil {
		return err
	}
	switch answer.Code {
	case 0:
		return nil
	case exitDifferent:
		return &exitError{errDifferent, exitDifferent}
	}
	return &exitError{errTold, answer.Code}
}

// read takes what only this process can read: standard input and pipes.
func (r *renderJob) read(ctx context.Context, in io.Reader) error {
	done := make(chan error, 1)
	go func() { // a read of a terminal cannot be broken off: it ends with the process
		text, err := readAll(in, r.File)
		if err != nil {
			done <- fmt.Errorf("reading the Release: %w", err)
			return
		}
		r.Text = text
		done <- errors.Join(r.Values.read("--values-from-dir"), r.Against.read("--diff-against"))
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *given) read(flag string) (err error) {
	if g.Path == "" {
		return nil
	}
	info, err := os.Stat(g.Path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", flag, err)
	}
	if info.IsDir() || info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(g.Path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", flag, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	g.Piped = true
	if g.Text, err = io.ReadAll(io.LimitReader(file, manifest.MaxFileBytes+1)); err != nil {
		return fmt.Errorf("reading %s: %w", flag, err)
	}
	return nil
}

func (g *given) load(namespace string) (*manifest.Set, error) {
	if g.Piped {
		return objects.Parse(g.Path, g.Text, namespace)
	}
	return objects.Load(g.Path, namespace)
}

// renderWorker is the other process. args are those after offline.WorkerName.
func renderWorker(args []string, in io.Reader, out, errOut io.Writer) int {
	return offline.Serve(args, in, errOut, func(r renderJob) int {
		buffer := bufio.NewWriter(out)
		err := r.render(buffer, errOut)
		if flushed := buffer.Flush(); flushed != nil {
			err = flushed
		}
		return exit(withCode(err), errOut)
	})
}

// render makes the objects and prints them.
func (r *renderJob) render(out, errOut io.Writer) error {
	release, err := parseRelease(r.Text, r.File, r.Name, r.Namespace, r.Forced)
	if err != nil {
		return fmt.Errorf("reading the Release: %w", err)
	}
	corev1alpha1.SetReleaseDefaults(release)
	o := offline.Options{
		Release: release, Source: r.Source, ClusterName: r.ClusterName,
		KubeVersion: r.KubeVersion, APIVersions: r.APIVersions, ImagesAsIs: r.ImagesAsIs,
	}
	if o.Cluster, err = pairs("--cluster", r.Cluster, errKeyPair); err != nil {
		return err
	}
	if o.Images, err = pairs("--image", r.Images, errImage); err != nil {
		return err
	}
	if o.Given, err = r.values(release.Namespace); err != nil {
		return fmt.Errorf("reading --values-from-dir: %w", err)
	}
	result, err := offline.Render(o)
	if err != nil {
		return fmt.Errorf("rendering Release %s/%s: %w", release.Namespace, release.Name, err)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintln(errOut, "warning:", warning)
	}
	return r.show(out, result.Set)
}

func (r *renderJob) values(namespace string) (*offline.Given, error) {
	if r.Values.Path == "" {
		return offline.NewGiven(nil, namespace)
	}
	set, err := r.Values.load(namespace)
	if err != nil {
		return nil, err
	}
	return offline.NewGiven(set, namespace)
}

// show prints the objects, or how they differ.
func (r *renderJob) show(out io.Writer, set *manifest.Set) error {
	masker := objects.NewMasker()
	list, err := masker.Mask(set)
	if err != nil {
		return err
	}
	if r.Against.Path == "" {
		return objects.Print(out, r.Output, objects.Blank(list))
	}
	other, err := r.Against.load(set.Namespace)
	if err != nil {
		return fmt.Errorf("reading --diff-against: %w", err)
	}
	before, err := masker.Mask(other)
	if err != nil {
		return fmt.Errorf("reading --diff-against: %w", err)
	}
	different, err := masker.Diff(out, set.Namespace, before, list)
	if err == nil && different {
		return &exitError{errDifferent, exitDifferent}
	}
	return err
}
