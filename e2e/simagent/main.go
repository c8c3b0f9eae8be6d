// SPDX-License-Identifier: Apache-2.0

// Command simagent runs many simulated agents in a process of its own, against a
// real hub: the link to the hub is the real one, and so is all that goes over it
// (deliver and report); what an engine would do between is left out. Benchmarks
// use it.
//
//	simagent --agents 1000 --tokens tokens.txt --settle 200ms
//
// Each line of the tokens file is a join token. With --identities the agents have
// joined before: each line is what one of them keeps, as JSON. Each second it prints a line of
// JSON with what the fleet has done so far; it ends on SIGINT or SIGTERM.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "simagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o := fleetOptions{}
	flags := flag.NewFlagSet("simagent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.Agents, "agents", 0, "how many agents; 0 means one for each token")
	tokens := flags.String("tokens", "-", "file with one join token a line; - is standard input")
	kept := flags.String("identities", "", "file with one identity a line, in place of tokens")
	flags.IntVar(&o.First, "first", 0, "number of the first agent, where several processes make one fleet")
	flags.StringVar(&o.GatewayURL, "gateway-url", "", "dial this instead of the URL in the tokens")
	flags.StringVar(&o.OuterCAFile, "outer-ca-file", "", "CA certificates for the connection outside the websocket")
	flags.DurationVar(&o.Settle, "settle", 0, "time from an order to the report that it has settled")
	flags.BoolVar(&o.Fetch, "fetch", true, "fetch the renders and verify their digests")
	flags.Float64Var(&o.Rate, "rate", 60, "agents started per second")
	flags.BoolVar(&o.Spread, "spread", false, "dial from 127.x.y.z, another address for each agent")
	flags.BoolVar(&o.Quick, "quick", false, "dial again within a second instead of as a fleet should")
	every := flags.Duration("every", time.Second, "time between two lines of output")
	verbose := flags.Bool("v", false, "log what the links say to standard error")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	if *verbose {
		ctx = logr.NewContext(ctx, funcr.New(func(prefix, args string) { fmt.Fprintln(stderr, prefix, args) }, funcr.Options{Verbosity: 1}))
	}
	if *kept != "" {
		*tokens = *kept
	}
	if *tokens != "-" {
		file, err := os.Open(*tokens)
		if err != nil {
			return fmt.Errorf("who the agents are: %w", err)
		}
		defer file.Close()
		stdin = file
	}
	var texts []string
	var err error
	if *kept != "" {
		o.identities, err = readIdentities(stdin)
	} else {
		texts, err = readTokens(stdin)
	}
	if err != nil {
		return err
	}
	f, err := newFleet(o, texts)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f.run(ctx) }()
	tick := time.NewTicker(*every)
	defer tick.Stop()
	out := json.NewEncoder(stdout)
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if err := out.Encode(f.line()); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
	}
}
