// SPDX-License-Identifier: Apache-2.0

// Command case replays case files on a real control plane: a hub beside its host, an
// edge cluster with an agent, a Git server. At each check it prints conditions,
// inventory and live objects, and beneath them what should be true; the reader judges.
// It exits with 0 unless it could not play a case. It drives the whole flow from
// outside; make case calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"kumodo.io/convoy/e2e/cases"
)

const usage = `usage: case [flags] FILE...

Replays case files (e2e/testdata/cases/README.md) on real control planes that are
started for it and ended afterwards.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "case:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("case", flag.ContinueOnError)
	opts := cases.Options{Out: os.Stdout}
	flags.DurationVar(&opts.Rest, "rest", time.Minute, "longest wait for a Release to be at rest")
	flags.BoolVar(&opts.Manual, "manual", false, "make Releases with syncPolicy.automatic: false, so that drift is shown and not repaired; when not given, so for cases that expect drift to be shown")
	flags.BoolVar(&opts.Full, "full", false, "print objects whole, with managedFields and long texts")
	check := flags.Bool("check", false, "read the files and play nothing")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // printed by the package
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("no file given")
	}
	opts.Auto = true
	flags.Visit(func(f *flag.Flag) { opts.Auto = opts.Auto && f.Name != "manual" })
	// All are read before anything is started. One that is broken, or cannot be played,
	// holds up no other.
	var all []*cases.Case
	var failed []error
	fail := func(err error) {
		failed = append(failed, err)
		fmt.Fprintln(os.Stderr, "case:", err)
	}
	for _, path := range flags.Args() {
		c, err := cases.Read(path)
		if err != nil {
			fail(err)
			continue
		}
		all = append(all, c)
	}
	if *check || len(all) == 0 {
		return summed(failed, flags.NArg())
	}
	fmt.Fprintln(os.Stderr, "starting a hub and an edge cluster; the first time their programs are built, which takes minutes")
	world, err := cases.Start(ctx)
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := cases.NewPlayer(world, c, opts).Play(ctx); err != nil {
			fail(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return summed(failed, flags.NArg())
}

// summed is what a run ends with, whose errors were printed when they came.
func summed(failed []error, files int) error {
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d files could not be played, the first: %w", len(failed), files, failed[0])
}
