// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kumodo.io/convoy/kubectl-convoy/offline"
)

// asPlugin makes the test's program the plugin.
const asPlugin = "CONVOY_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" || len(os.Args) > 1 && os.Args[1] == offline.WorkerName {
		main()
		return
	}
	os.Exit(m.Run())
}

// chartOf is a folder with a chart of one template, and the Release of it.
func chartOf(t *testing.T, template string) (release, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "templates"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Chart.yaml": "{apiVersion: v2, name: app, version: 0.0.1}", "values.yaml": "a: 1", "templates/a.yaml": template} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return released(t, "  content: {path: .}\n"), dir
}

const spin = `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`

func TestARenderThatIsTooMuchIsOneLineOfError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		template string
		change   func(*offline.Limits)
		want     error
		says     string
	}{
		"processor time":        {spin, func(l *offline.Limits) { l.CPU = time.Second }, offline.ErrCPU, "the render takes too much processor time: more than 1s"},
		"time":                  {spin, func(l *offline.Limits) { l.Wall = time.Second }, offline.ErrDeadline, "the render takes too long: more than 1s"},
		"memory at once":        {`{{ repeat 4294967296 "x" }}`, nil, offline.ErrMemory, "the render needs too much memory: more than 768 MiB"},
		"memory bit by bit":     {`{{ $s := "xx" }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}{{ $s }}`, nil, offline.ErrMemory, "768 MiB"},
		"a map that has itself": {`{{ $_ := set .Values "self" .Values }}{{ .Values }}`, nil, offline.ErrDeep, "the render recurses too deep"},
		"output":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " + strings.Repeat("x", 1000) + "}}", func(l *offline.Limits) { l.OutBytes = 100 }, offline.ErrOutput, "too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, dir := chartOf(t, test.template)
			limits := offline.HubLimits
			if test.change != nil {
				test.change(&limits)
			}
			var stdout, stderr bytes.Buffer
			command := newRenderWithin(limits, genericclioptions.NewConfigFlags(true), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
			command.SilenceErrors, command.SilenceUsage = true, true
			command.SetArgs([]string{"-f", release, "--source", dir})
			err := command.ExecuteContext(t.Context())
			code := exit(err, &stderr)
			said := stderr.String()
			if !errors.Is(err, test.want) || code != exitFailed || !strings.Contains(said, test.says) {
				t.Errorf("exit code %d, %v: %.300s", code, err, said)
			}
			if strings.Count(said, "\n") != 1 || stdout.Len() > 0 {
				t.Errorf("more than a line: %.300s%.300s", said, stdout.String())
			}
		})
	}
}

func TestSignalsEndARenderAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signal syscall.Signal
		whole  bool
		code   int
	}{
		"SIGTERM while it renders":             {syscall.SIGTERM, true, 143},
		"SIGINT while it renders":              {syscall.SIGINT, true, 130},
		"SIGTERM while it waits for a Release": {syscall.SIGTERM, false, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, dir := chartOf(t, spin)
			text, err := os.ReadFile(release)
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			command := exec.CommandContext(t.Context(), os.Args[0], "render", "-f", "-", "--source", dir)
			command.Env = append(os.Environ(), asPlugin+"=1")
			command.Stderr = &said
			in, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }() // it may be closed already
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = command.Wait() // how it ended is in its state
			}()
			// More than a pipe holds: once it is written the plugin reads, and listens.
			if _, err := in.Write(append(text, bytes.Repeat([]byte("# more\n"), 40_000)...)); err != nil {
				t.Fatal(err)
			}
			if test.whole {
				if err := in.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := command.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("it goes on")
				if err := command.Process.Kill(); err != nil {
					t.Error(err)
				}
				<-ended
			}
			if code := command.ProcessState.ExitCode(); code != test.code || !strings.Contains(said.String(), "ended by a signal") {
				t.Errorf("exit code %d: %s", code, said.String())
			}
		})
	}
}
