// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// Errors of lifecycle's command line.
var (
	errAction    = errors.New("must be retry, skip or abort, and then the name of a hook")
	errNoRun     = errors.New("has no run that can be acted on: without an action its runs are shown")
	errRunAlone  = errors.New("--run goes with an action and a hook")
	errOutputToo = errors.New("-o is for showing, not with an action")
)

type lifecycleVerb struct {
	streams genericiooptions.IOStreams
	output  string
	run     string
}

func newLifecycle(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &lifecycleVerb{streams: streams}
	command := &cobra.Command{
		Use:   "lifecycle NAME [retry|skip|abort HOOK]",
		Short: "Show the hooks of a Release and their runs, or act on one",
		Long: `Show the hooks of a Release and their last runs, newest first; or have one that failed
run once more (retry), go on as if it had succeeded (skip), or end it and the sync with
it (abort). A hook is named as it is shown: by its name in spec.lifecycle, or
Kind/namespace/name of an object of the render. Without --run its newest run is meant.`,
		Example: `  kubectl convoy lifecycle shop
  kubectl convoy lifecycle shop retry migrate
  kubectl convoy lifecycle shop skip Job/shop/prepare --run 1790000000000-1`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(command *cobra.Command, args []string) error {
			if err := verb.check(args); err != nil {
				return err
			}
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return verb.show(command.Context(), hub, args[0])
			}
			return verb.act(command.Context(), hub, args[0], corev1alpha1.HookAction(args[1]), args[2])
		},
	}
	command.Flags().StringVar(&verb.run, "run", "", "which run of the hook; default: the newest")
	command.Flags().StringVarP(&verb.output, "output", "o", outputTable, "json or yaml; default: a table")
	return command
}

func (l *lifecycleVerb) check(args []string) error {
	if len(args) == 1 {
		if l.run != "" {
			return errRunAlone
		}
		return checkOutput(l.output)
	}
	known := []corev1alpha1.HookAction{corev1alpha1.HookRetry, corev1alpha1.HookSkip, corev1alpha1.HookAbort}
	switch {
	case len(args) != 3 || !slices.Contains(known, corev1alpha1.HookAction(args[1])):
		return fmt.Errorf("%q %w", args[1], errAction)
	case l.output != outputTable:
		return errOutputToo
	}
	return nil
}

func (l *lifecycleVerb) show(ctx context.Context, hub *hub, name string) error {
	answer := &corev1alpha1.ReleaseLifecycle{}
	if err := hub.ask(ctx, name, "lifecycle", answer); err != nil {
		return err
	}
	if l.output != outputTable {
		return printAnswer(l.streams.Out, l.output, "ReleaseLifecycle", answer)
	}
	now := time.Now()
	table := tabwriter.NewWriter(l.streams.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "HOOK\tPHASE\tSTATE\tRUN\tAGE\tMESSAGE")
	ran := map[[2]string]bool{}
	for i := range answer.Runs {
		run := &answer.Runs[i]
		ran[[2]string{run.Hook, string(run.Phase)}] = true
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(run.Hook), run.Phase, run.State, oneLine(run.Run), age(run.StartedAt, now), oneLine(run.Message))
	}
	for i := range answer.Spec.Hooks {
		for _, phase := range answer.Spec.Hooks[i].Phases {
			if !ran[[2]string{answer.Spec.Hooks[i].Name, string(phase)}] {
				fmt.Fprintf(table, "%s\t%s\t%s\t\t\t\n", answer.Spec.Hooks[i].Name, phase, stateNotRun)
			}
		}
	}
	return table.Flush()
}

// stateNotRun is shown for hooks of which no run is known.
const stateNotRun = "-"

func (l *lifecycleVerb) act(ctx context.Context, hub *hub, name string, action corev1alpha1.HookAction, hook string) error {
	run := l.run
	if run == "" {
		answer := &corev1alpha1.ReleaseLifecycle{}
		if err := hub.ask(ctx, name, "lifecycle", answer); err != nil {
			return err
		}
		at := slices.IndexFunc(answer.Runs, func(r corev1alpha1.HookRun) bool { return r.Hook == hook })
		if at < 0 {
			return fmt.Errorf("hook %q of Release %s %w", hook, name, errNoRun)
		}
		run = answer.Runs[at].Run
	}
	request := &corev1alpha1.ReleaseLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Request:    &corev1alpha1.HookRequest{Hook: hook, Run: run, Action: action},
	}
	err := hub.client.Post().Namespace(hub.namespace).Resource("releases").Name(name).SubResource("lifecycle").
		Param("fieldValidation", "Strict").Body(request).Do(ctx).Into(&corev1alpha1.ReleaseLifecycle{})
	if err != nil {
		return explain(err, errNoRelease)
	}
	_, err = fmt.Fprintf(l.streams.Out, "release/%s %s of hook %s, run %s, requested\n", name, action, hook, run)
	return err
}
