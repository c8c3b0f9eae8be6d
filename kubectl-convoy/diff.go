// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/objects"
	"kumodo.io/convoy/pkg/manifest"
)

// Errors of a diff.
var (
	errNothingToCompare = errors.New("give the NAME of a Release, or a file with -f")
	// errNotKnown: nothing is known to differ, and not all is known.
	errNotKnown = errors.New("whether it differs is not known")
)

type diffVerb struct {
	streams genericiooptions.IOStreams
	file    string
	output  string
}

func newDiff(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &diffVerb{streams: streams}
	command := &cobra.Command{
		Use:   "diff [NAME]",
		Short: "Show how what runs differs from a Release",
		Long: `Show how what runs on the cluster differs from what was applied for a Release, field by
field as the agent there says, and how what was applied differs from the render that
waits, where one does (with syncPolicy.automatic false, say). With -f, what was applied is
compared with what a file renders to.

Secret values are not shown: *** stands for one that differs, <sealed:1> for one of a
render.

The exit code is that of kubectl diff: 0 when nothing differs, 1 when something does,
more than 1 for an error, and when that cannot be told since nobody on the cluster answers.`,
		Example: `  # What is different from what was applied, or would be applied next
  kubectl convoy diff shop

  # ... and what a change that is not made yet would do
  kubectl convoy diff -f shop.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return withCode(verb.run(command.Context(), flags, name))
		},
	}
	command.Flags().StringVarP(&verb.file, "filename", "f", "", "file with a Release that need not be on the hub; - is standard input")
	command.Flags().StringVarP(&verb.output, "output", "o", outputTable, "json or yaml; default: differences as diff -u shows them")
	return command
}

func (d *diffVerb) run(ctx context.Context, flags *genericclioptions.ConfigFlags, name string) error {
	if err := checkOutput(d.output); err != nil {
		return err
	}
	hub, err := newHub(flags)
	if err != nil {
		return err
	}
	diff, err := d.ask(ctx, hub, name, *flags.Namespace != "")
	if err != nil {
		return err
	}
	if d.output != outputTable {
		err = printAnswer(d.streams.Out, d.output, "ReleaseDiff", diff)
	} else {
		err = d.print(diff)
	}
	switch {
	case err != nil:
		return err
	case diff.Different:
		return &exitError{errDifferent, exitDifferent}
	case d.file == "" && !certain(diff):
		return errNotKnown
	}
	return nil
}

// certain: all was compared.
func certain(diff *corev1alpha1.ReleaseDiff) bool {
	return diff.Observation.Live && len(diff.Drift) == 0
}

// ask gets the differences of the name, or of the file.
func (d *diffVerb) ask(ctx context.Context, hub *hub, name string, forced bool) (*corev1alpha1.ReleaseDiff, error) {
	diff := &corev1alpha1.ReleaseDiff{}
	if d.file == "" {
		if name == "" {
			return nil, errNothingToCompare
		}
		return diff, hub.ask(ctx, name, "diff", diff)
	}
	release, err := readRelease(d.streams.In, d.file, name, hub.namespace, forced)
	if err != nil {
		return nil, fmt.Errorf("reading the Release: %w", err)
	}
	err = hub.client.Post().Namespace(release.Namespace).Resource("releases").Name(release.Name).SubResource("diff").
		Param("fieldValidation", "Strict").Body(release).Do(ctx).Into(diff)
	return diff, explainPreview(err)
}

func (d *diffVerb) print(diff *corev1alpha1.ReleaseDiff) error {
	if d.file == "" {
		told(d.streams.ErrOut, diff.Name, &diff.Observation, time.Now())
	}
	if err := printDrift(d.streams.Out, diff.Drift); err != nil {
		return err
	}
	if diff.MoreDrift > 0 {
		fmt.Fprintf(d.streams.ErrOut, "and %d more objects that may differ\n", diff.MoreDrift)
	}
	if diff.PendingProblem != "" {
		fmt.Fprintf(d.streams.ErrOut, "what was applied (%s) is another render than %s: %s\n", short(diff.AppliedRef), short(diff.RenderRef), diff.PendingProblem)
	}
	if len(diff.Pending) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(d.streams.Out, "# from what was applied (%s) to the render %s\n", short(diff.AppliedRef), short(diff.RenderRef)); err != nil {
		return err
	}
	var before, after []objects.Object
	for _, change := range diff.Pending {
		for _, side := range []struct {
			raw  []byte
			list *[]objects.Object
		}{{rawOf(change.Applied), &before}, {rawOf(change.Wanted), &after}} {
			if side.raw == nil {
				continue
			}
			object, err := objects.Read(side.raw)
			if err != nil {
				return fmt.Errorf("reading the answer of the hub: %w", err)
			}
			*side.list = append(*side.list, object)
		}
	}
	_, err := objects.NewMasker().Diff(d.streams.Out, "", before, after)
	return err
}

// printDrift shows each field as a hunk: what is there, and what was applied.
func printDrift(w io.Writer, drift []corev1alpha1.ObjectDrift) error {
	if len(drift) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "# from what runs to what was applied"); err != nil {
		return err
	}
	for i := range drift {
		o := &drift[i]
		name := objects.Name(manifest.Identity{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
		if _, err := fmt.Fprintf(w, "--- %s\n+++ %s\n", name, name); err != nil {
			return err
		}
		switch note := oneLine(first(o.Problem, o.Reason)); {
		case o.InSync != "False":
			fmt.Fprintf(w, "# not compared: %s\n", first(note, "it was not seen yet"))
		case len(o.Fields) == 0:
			fmt.Fprintf(w, "# %s\n", first(note, "it differs"))
		}
		for _, f := range o.Fields {
			by := ""
			if f.Manager != "" {
				by = " by " + oneLine(f.Manager)
			}
			fmt.Fprintf(w, "@@ %s%s @@\n", oneLine(f.Path), by)
			for _, side := range []struct{ sign, value string }{{"-", f.Live}, {"+", f.Wanted}} {
				if side.value != "" {
					fmt.Fprintf(w, "%s%s\n", side.sign, oneLine(side.value))
				}
			}
		}
		if o.MoreFields > 0 {
			fmt.Fprintf(w, "# and %d more fields\n", o.MoreFields)
		}
	}
	return nil
}

// short is a digest as tables show it, or what there is instead.
func short(digest string) string {
	const shown = len("sha256:") + 12
	switch {
	case digest == "":
		return "nothing"
	case len(digest) > shown:
		return digest[:shown]
	}
	return digest
}
