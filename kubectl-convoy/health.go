// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/objects"
	"kumodo.io/convoy/pkg/manifest"
)

type healthVerb struct {
	streams genericiooptions.IOStreams
	output  string
}

func newHealth(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &healthVerb{streams: streams}
	command := &cobra.Command{
		Use:   "health NAME",
		Short: "Show how each object of a Release is on its cluster",
		Long: `Show how each object of a Release is on its cluster now, the worst first, as the agent
there says. Where nobody there can be asked, it is shown as it was known last, and said so.`,
		Example: `  kubectl convoy health shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkOutput(verb.output); err != nil {
				return err
			}
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			return verb.run(command.Context(), hub, args[0])
		},
	}
	command.Flags().StringVarP(&verb.output, "output", "o", outputTable, "json or yaml; default: a table")
	return command
}

func (v *healthVerb) run(ctx context.Context, hub *hub, name string) error {
	health := &corev1alpha1.ReleaseHealth{}
	if err := hub.ask(ctx, name, "health", health); err != nil {
		return err
	}
	if v.output != outputTable {
		return printAnswer(v.streams.Out, v.output, "ReleaseHealth", health)
	}
	now := time.Now()
	told(v.streams.ErrOut, name, &health.Observation, now)
	table := tabwriter.NewWriter(v.streams.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "OBJECT\tSTATE\tIN SYNC\tSINCE\tMESSAGE")
	for i := range health.Objects {
		o := &health.Objects[i]
		id := manifest.Identity{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", objects.Name(id), o.State, inSync(o), age(o.Since, now), oneLine(first(o.Message, o.Problem)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if health.MoreObjects > 0 {
		fmt.Fprintf(v.streams.ErrOut, "and %d more objects, none of them worse\n", health.MoreObjects)
	}
	return nil
}

func inSync(o *corev1alpha1.ObjectHealth) string {
	if o.Reason != "" && o.Reason != o.State {
		return strings.TrimSpace(o.InSync + " " + o.Reason)
	}
	return o.InSync
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// oneLine of a text that somebody else wrote: without what would move the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
