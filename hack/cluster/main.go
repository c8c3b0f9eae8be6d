// SPDX-License-Identifier: Apache-2.0

// Command cluster starts real control planes for people: "up NAME" starts one
// that stays and prints its kubeconfig, "down NAME" ends it, "list" shows what
// there is, "build" builds the programs that they are made of. It stands
// outside the flow; make cluster, make cluster-down and make kube call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/harness/keep"
)

var errUsage = errors.New("usage: cluster up NAME | down NAME | list | build")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "up":
		return up(ctx, args[1], out)
	case len(args) == 2 && args[0] == "down":
		return keep.Down(ctx, args[1])
	case len(args) == 1 && args[0] == "list":
		return list(out)
	case len(args) == 1 && args[0] == "build":
		_, err := harness.Binaries(ctx)
		return err
	default:
		return errUsage
	}
}

func up(ctx context.Context, name string, out io.Writer) error {
	if _, err := fmt.Fprintln(out, "Starting a control plane. The first time its programs are built, which takes minutes."); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	bin, err := harness.Binaries(ctx)
	if err != nil {
		return err
	}
	state, err := keep.Up(ctx, name, harness.Options{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `
Cluster %[1]s is ready at %[2]s.

  export KUBECONFIG=%[3]s
  export PATH=%[4]s:$PATH
  kubectl get nodes

Its node is a fake: pods become Ready, but nothing runs in them.
Logs and the audit log are in %[5]s.
End it with: make cluster-down NAME=%[1]s
`, state.Name, state.URL, state.Kubeconfig, string(bin), state.Dir)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func list(out io.Writer) error {
	all, err := keep.List()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if _, err := fmt.Fprintln(w, "NAME\tRUNNING\tADDRESS\tKUBECONFIG"); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	for _, s := range all {
		if _, err := fmt.Fprintf(w, "%s\t%t\t%s\t%s\n", s.Name, s.Running(), s.URL, s.Kubeconfig); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
