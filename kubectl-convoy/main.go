// SPDX-License-Identifier: Apache-2.0

// Command kubectl-convoy is the kubectl plugin: verbs that need more than one
// request, or a secret that must not leave the caller. It speaks to the host's API
// server only, with the standard kubeconfig rules and flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(streams).ExecuteContext(ctx)
	stop()
	os.Exit(exit(err, os.Stderr))
}

// exit tells an error and gives the code to end with.
func exit(err error, to io.Writer) int {
	if err == nil {
		return 0
	}
	code := 1
	var coded *exitError
	if errors.As(err, &coded) {
		code = coded.code
	}
	if !errors.Is(err, errDifferent) {
		fmt.Fprintln(to, "error:", err)
	}
	return code
}

// newCommand returns the root command with all verbs.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:           "kubectl-convoy",
		Short:         "Join clusters to a convoy hub, sync its Releases and look after it",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl convoy"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags.AddFlags(root.PersistentFlags())
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(newJoin(flags, streams), newSync(flags, streams), newPreview(flags, streams), newRender(flags, streams), newConfirm(flags, streams), newRevoke(flags, streams), newKeys(flags, streams), newBackup(flags, streams), newRestore(flags, streams), newVersion(streams))
	return root
}
