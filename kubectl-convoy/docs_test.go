// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The examples of pages are what their commands print.
func TestTheExampleOfThePageOfPreviewsIsTrue(t *testing.T) { theExampleIsTrue(t, "preview.md", 3) }

func TestTheExampleOfThePageOfHooksIsTrue(t *testing.T) { theExampleIsTrue(t, "lifecycle.md", 2) }

func theExampleIsTrue(t *testing.T, name string, want int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "spec", name))
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "\n## An example\n")
	if !found {
		t.Fatal("the page has no example")
	}
	if next := strings.Index(example, "\n## "); next >= 0 {
		example = example[:next]
	}
	blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(example, -1)
	if len(blocks) != 3 || blocks[2][1] != "console" {
		t.Fatalf("%d blocks: a Release, manifests and a session are expected", len(blocks))
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "deploy"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"release.yaml": blocks[0][2], "deploy/app.yaml": blocks[1][2]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var session bytes.Buffer
	commands := 0
	for line := range strings.Lines(blocks[2][2]) {
		words, ok := strings.CutPrefix(strings.TrimSpace(line), "$ kubectl convoy ")
		if !ok {
			continue
		}
		commands++
		session.WriteString(line)
		command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &session, ErrOut: &session})
		command.SetArgs(strings.Fields(words))
		exit(command.ExecuteContext(t.Context()), &session)
	}
	if diff := cmp.Diff(blocks[2][2], session.String()); diff != "" || commands != want {
		t.Errorf("%d commands (-page +printed):\n%s", commands, diff)
	}
}
