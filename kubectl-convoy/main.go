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
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kumodo.io/convoy/kubectl-convoy/offline"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == offline.WorkerName {
		os.Exit(renderWorker(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := interruptible(context.Background())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(streams).ExecuteContext(ctx)
	stop()
	os.Exit(exit(err, os.Stderr))
}

// interruption is a signal that ends the plugin.
type interruption struct{ signal os.Signal }

func (i *interruption) Error() string { return "ended by a signal: " + i.signal.String() }

// code is what a shell gives a program that such a signal ended.
func (i *interruption) code() int {
	if number, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailed
}

// interruptible gives a context that ends with an interruption when the plugin is told
// to end.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	var waits sync.WaitGroup
	waits.Go(func() {
		select {
		case s := <-told:
			cancel(&interruption{s})
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		signal.Stop(told)
		cancel(nil)
		waits.Wait()
	}
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
	if !errors.Is(err, errDifferent) && !errors.Is(err, errTold) {
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
	root.AddCommand(newJoin(flags, streams), newSync(flags, streams), newPreview(flags, streams), newDiff(flags, streams), newHealth(flags, streams), newHistory(flags, streams), newLifecycle(flags, streams), newRender(flags, streams), newConfirm(flags, streams), newRevoke(flags, streams), newKeys(flags, streams), newBackup(flags, streams), newRestore(flags, streams), newVersion(streams))
	return root
}
