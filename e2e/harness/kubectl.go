// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Env is the environment for kubectl and programs like it: the plane's admin
// kubeconfig, the plane's kubectl first in PATH, caches in the plane's folder.
// Folders given are put before all others in PATH, for plugins.
func (p *Plane) Env(path ...string) []string {
	list := ""
	for _, dir := range append(path, string(p.bin)) {
		list += dir + string(filepath.ListSeparator)
	}
	return []string{
		"KUBECONFIG=" + p.Kubeconfig(),
		"PATH=" + list + os.Getenv("PATH"),
		"HOME=" + p.dir,
		"TMPDIR=" + p.dir,
		"NO_PROXY=127.0.0.1,localhost",
	}
}

// KubectlCommand gives kubectl as a command to be run by the caller, who may
// set its input and add to its environment.
func (p *Plane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.bin.Path("kubectl"), args...)
	cmd.Env = p.Env()
	cmd.Dir = p.dir
	return cmd
}

// Kubectl runs kubectl as the plane's admin and gives its standard output. A
// failure is a *CommandError that carries the standard error.
func (p *Plane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return RunCommand(p.KubectlCommand(ctx, args...))
}

// KubectlInput is Kubectl with a standard input, as for apply -f -.
func (p *Plane) KubectlInput(ctx context.Context, input string, args ...string) (string, error) {
	cmd := p.KubectlCommand(ctx, args...)
	cmd.Stdin = bytes.NewReader([]byte(input))
	return RunCommand(cmd)
}

// RunCommand runs a command and gives its standard output. A failure is a
// *CommandError that carries the standard error.
func RunCommand(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &limited{w: &stdout, left: maxCommandOutput}
	cmd.Stderr = &limited{w: &stderr, left: maxCommandOutput}
	if err := cmd.Run(); err != nil {
		return stdout.String(), &CommandError{Args: cmd.Args, Stderr: stderr.String(), Err: err}
	}
	return stdout.String(), nil
}

// limited fails a command that writes without end.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, fmt.Errorf("more than %d bytes of output", maxCommandOutput)
	}
	n, err := l.w.Write(b)
	if err != nil {
		return n, fmt.Errorf("keep output: %w", err)
	}
	return n, nil
}
