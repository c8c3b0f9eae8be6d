// SPDX-License-Identifier: Apache-2.0

// Command convoy-hub is an aggregated API server with controllers and a gateway
// for agents: the steps source, render, store, deliver and report of the flow
// source -> render -> store -> deliver -> apply -> observe -> report. The same
// program, started by itself with another first argument, is the worker that
// renders what tenants give, and the one that fetches it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kumodo.io/convoy/hub/options"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/wiring"
	"kumodo.io/convoy/pkg/version"
)

func main() { os.Exit(run(os.Args[1:])) }

// run dispatches before any flag is read: a worker has none of the hub's.
func run(args []string) int {
	if len(args) > 0 {
		switch args[0] {
		case render.WorkerName:
			return render.Main(args[1:], os.Stdin, os.Stdout)
		case source.WorkerName:
			return source.Main(args[1:], os.Stdin, os.Stdout)
		case wiring.ExportName:
			return export(args[1:])
		}
	}
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("convoy-hub", version.Version)
		return 0
	}
	config, err := configure(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "convoy-hub:", err)
		return 2
	}
	log := logger(os.Stderr, config.LogJSON, config.Verbosity)
	klog.SetLogger(log)
	ctrllog.SetLogger(log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := wiring.Run(logr.NewContext(ctx, log), config); err != nil {
		log.Error(err, "The hub has ended")
		return 1
	}
	log.Info("The hub has ended")
	return 0
}

// export writes renders as an OCI layout, and gives an exit code.
func export(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := wiring.Export(ctx, args, os.Stdout)
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "convoy-hub:", err)
		return 1
	}
	return 0
}

// logger writes one line an event, as JSON or as text, up to a verbosity.
func logger(to io.Writer, asJSON bool, verbosity int) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	var handler slog.Handler = slog.NewTextHandler(to, options)
	if asJSON {
		handler = slog.NewJSONHandler(to, options)
	}
	return logr.FromSlogHandler(handler)
}

func configure(args []string) (*options.Config, error) {
	given, err := options.Parse(args, os.Stdout)
	if err != nil {
		return nil, err
	}
	completed := given.Complete()
	if err := errors.Join(completed.Validate()...); err != nil {
		return nil, err
	}
	return completed.Config()
}
