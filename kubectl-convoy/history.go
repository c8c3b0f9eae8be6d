// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func newHistory(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	output := outputTable
	command := &cobra.Command{
		Use:     "history NAME",
		Short:   "Show which renders of a Release were applied",
		Long:    `Show which renders of a Release were applied, newest first, and whether the hub still has them.`,
		Example: `  kubectl convoy history shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			return history(command.Context(), hub, streams, args[0], output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", outputTable, "json or yaml; default: a table")
	return command
}

func history(ctx context.Context, hub *hub, streams genericiooptions.IOStreams, name, output string) error {
	answer := &corev1alpha1.ReleaseHistory{}
	if err := hub.ask(ctx, name, "history", answer); err != nil {
		return err
	}
	if output != outputTable {
		return printAnswer(streams.Out, output, "ReleaseHistory", answer)
	}
	table := tabwriter.NewWriter(streams.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "RENDER\tREVISION\tORDER\tAPPLIED\tHEALTHY\tOBJECTS\tNOTE")
	for i := range answer.Entries {
		e := &answer.Entries[i]
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%t\t%s\t%s\n", short(e.RenderRef), oneLine(e.SourceRevision), e.Sequence, age(e.AppliedAt, time.Now()), e.Healthy, count(e), note(e))
	}
	return table.Flush()
}

func count(e *corev1alpha1.HistoryDetail) string {
	if !e.Stored {
		return ""
	}
	return strconv.Itoa(int(e.Count))
}

func note(e *corev1alpha1.HistoryDetail) string {
	var notes []string
	for _, n := range []struct {
		is   bool
		text string
	}{{e.Current, "current"}, {e.Applied, "applied"}, {!e.Stored, "not stored"}} {
		if n.is {
			notes = append(notes, n.text)
		}
	}
	return strings.Join(notes, ", ")
}

// rawOf an object that may not be there.
func rawOf(object *runtime.RawExtension) []byte {
	if object == nil {
		return nil
	}
	return object.Raw
}
