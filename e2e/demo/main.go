// SPDX-License-Identifier: Apache-2.0

// Command demo shows the whole flow, source to report, on this machine: a hub and
// two edge clusters as real control planes, installed from the shipped manifests.
// "up" tells the story and leaves everything running, "down" ends it. make demo
// and make demo-down call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

var errUsage = errors.New("usage: demo up | down")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errUsage
	}
	switch args[0] {
	case "up":
		return up(ctx, out)
	case "down":
		return down(ctx, out)
	case keepVerb:
		return keep(ctx)
	default:
		return errUsage
	}
}
