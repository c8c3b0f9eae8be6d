// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
)

// Base is what most suites stand on: the programs of the tree, control planes that
// do not wait for the disk, a Git server and a folder.
type Base struct {
	Programs Programs
	Planes   []*harness.Plane
	Git      *gitserver.Server
	Dir      string
}

// NewBase builds and starts all of it, or nothing. The folder is named after what
// stands on it.
func NewBase(ctx context.Context, name string, planes ...harness.Options) (_ *Base, err error) {
	b := &Base{}
	if b.Programs, err = Build(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	for i := range planes {
		planes[i].UnsafeNoFsync = true
	}
	if b.Planes, err = harness.StartAll(ctx, planes...); err != nil {
		return nil, fmt.Errorf("start planes: %w", err)
	}
	if b.Dir, err = os.MkdirTemp("", "convoy-"+name+"-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if b.Git, err = gitserver.Start(ctx, filepath.Join(b.Dir, "git"), "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start a Git server: %w", err)
	}
	return b, nil
}

// Close ends all of it.
func (b *Base) Close() error {
	var err error
	if b.Git != nil {
		err = b.Git.Close()
	}
	for _, plane := range b.Planes {
		err = errors.Join(err, plane.Stop())
	}
	if b.Dir != "" {
		err = errors.Join(err, os.RemoveAll(b.Dir))
	}
	return err
}

// Code is what the program of a suite ends with: what run gives, 1 when it fails.
func Code(run func() (int, error)) int {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
