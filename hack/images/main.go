// SPDX-License-Identifier: Apache-2.0

// Command images builds the images of hub and agent as OCI image layouts, without a
// container engine: a folder and a tar of it for each. What it writes depends on the
// source, the Go toolchain and its flags alone, to the bit. It stands before the flow,
// where programs are packed; Dockerfile.hub and Dockerfile.agent take the files beside
// the program from it (--beside).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	root, out, beside string
	programs          []string
	platforms         []platform
	version, tag      string
	created           time.Time
}

// platform is an operating system's architecture.
type platform struct{ os, arch string }

var errUsage = errors.New("wrong flags")

func parse(args []string) (*options, error) {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	root := flags.String("root", "../..", "folder of the source")
	out := flags.String("out", "../../bin/images", "where the layouts go")
	beside := flags.String("beside", "", "only write the files that the image has beside its program to this folder")
	programs := flags.String("programs", "hub,agent", "hub, agent or both")
	platforms := flags.String("platforms", "linux/"+runtime.GOARCH, "operating systems and architectures, such as linux/amd64,linux/arm64")
	version := flags.String("version", "v0.0.0-dev", "version that the programs say")
	tag := flags.String("tag", "dev", "tag of the images")
	created := flags.String("created", "1970-01-01T00:00:00Z", "time of all files and of the images, RFC 3339: that of the commit")
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	o := &options{root: *root, out: *out, beside: *beside, version: *version, tag: *tag, programs: strings.Split(*programs, ",")}
	for _, name := range o.programs {
		if name != "hub" && name != "agent" {
			return nil, fmt.Errorf("%w: there is no program %q", errUsage, name)
		}
	}
	for one := range strings.SplitSeq(*platforms, ",") {
		system, arch, found := strings.Cut(one, "/")
		if !found || system != "linux" || arch == "" {
			return nil, fmt.Errorf("%w: platform %q", errUsage, one)
		}
		o.platforms = append(o.platforms, platform{system, arch})
	}
	var err error
	if o.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return nil, fmt.Errorf("%w: --created: %w", errUsage, err)
	}
	o.created = o.created.UTC()
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return fmt.Errorf("folder of the source: %w", err)
	}
	for _, name := range o.programs {
		p := program{name: name, options: o}
		if o.beside != "" {
			if err := p.writeBeside(ctx, o.beside); err != nil {
				return err
			}
			continue
		}
		if err := p.image(ctx); err != nil {
			return fmt.Errorf("image of convoy-%s: %w", name, err)
		}
	}
	return nil
}
