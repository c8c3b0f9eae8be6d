// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

const (
	root    = "../.."
	version = "v0.2.0-test"
	created = "2026-11-29T10:00:00Z"
)

// copySource copies what git knows of the tree to another folder, as a clone of the
// same commit has it, without history.
func copySource(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "elsewhere", "convoy")
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// build makes the image of a program from a folder and returns where it is.
func build(t *testing.T, name, from string) string {
	t.Helper()
	out := t.TempDir()
	err := run(t.Context(), []string{"--root", from, "--out", out, "--programs", name, "--version", version, "--created", created})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tree hashes all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all[name] = digest.FromBytes(text).String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// image is one read back.
type image struct {
	manifest v1.Manifest
	config   v1.Image
	files    map[string]*tar.Header
	program  []byte
}

// pull reads an image through a library that did not write it, digests checked.
func pull(t *testing.T, from oras.ReadOnlyTarget, name string) image {
	t.Helper()
	ctx := t.Context()
	var got image
	top, raw, err := oras.FetchBytes(ctx, from, "dev", oras.DefaultFetchBytesOptions)
	if err != nil {
		t.Fatal(err)
	}
	if top.MediaType != v1.MediaTypeImageManifest {
		t.Fatalf("the tag leads to %s", top.MediaType)
	}
	decode(t, raw, &got.manifest)
	if raw, err = content.FetchAll(ctx, from, got.manifest.Config); err != nil {
		t.Fatal(err)
	}
	decode(t, raw, &got.config)
	got.files = map[string]*tar.Header{}
	for i, layer := range got.manifest.Layers {
		packed, err := content.FetchAll(ctx, from, layer)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if is := digest.FromBytes(plain); is != got.config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d unpacked is %s, the configuration says %s", i, is, got.config.RootFS.DiffIDs[i])
		}
		for in := tar.NewReader(bytes.NewReader(plain)); ; {
			header, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got.files[header.Name] = header
			if header.Name == "convoy-"+name {
				if got.program, err = io.ReadAll(in); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return got
}

func TestImagesAreTheSameBitsFromAnotherFolderAndReadBackWhole(t *testing.T) {
	elsewhere := copySource(t)
	for _, name := range []string{"agent", "hub"} {
		t.Run(name, func(t *testing.T) {
			out := build(t, name, root)
			if diff := cmp.Diff(tree(t, out), tree(t, build(t, name, elsewhere))); diff != "" {
				t.Errorf("the image depends on where it is built (-here +elsewhere):\n%s", diff)
			}
			layout, err := oci.NewFromFS(t.Context(), os.DirFS(filepath.Join(out, "convoy-"+name)))
			if err != nil {
				t.Fatal(err)
			}
			got := pull(t, layout, name)
			archive, err := oci.NewFromTar(t.Context(), filepath.Join(out, "convoy-"+name+".tar"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.manifest, pull(t, archive, name).manifest); diff != "" {
				t.Errorf("folder and archive hold different images (-folder +archive):\n%s", diff)
			}
			checkConfig(t, name, got)
			checkFiles(t, name, got)
			t.Run("the program runs with nothing else", func(t *testing.T) { runAlone(t, name, got.program) })
		})
	}
}

func checkConfig(t *testing.T, name string, got image) {
	t.Helper()
	want := v1.ImageConfig{
		User: "65532:65532", Entrypoint: []string{"/convoy-" + name}, WorkingDir: "/",
		Labels: program{name: name, options: &options{version: version}}.labels(),
	}
	if diff := cmp.Diff(want, got.config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	for _, label := range []string{"source", "version", "licenses"} {
		if got.config.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label for %s", label)
		}
	}
	if at := got.config.Created.Format(time.RFC3339); at != created {
		t.Errorf("made at %s, want %s", at, created)
	}
}

func checkFiles(t *testing.T, name string, got image) {
	t.Helper()
	for path, header := range got.files {
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.UTC().Format(time.RFC3339) != created || header.Mode&0o022 != 0 {
			t.Errorf("%s: owner %d:%d, mode %o, time %s", path, header.Uid, header.Gid, header.Mode, header.ModTime)
		}
		top, _, _ := strings.Cut(path, "/")
		if !slices.Contains([]string{"convoy-" + name, "etc", "licenses"}, top) {
			t.Errorf("%s has no business in the image", path)
		}
	}
	for _, path := range []string{
		"convoy-" + name, "etc/ssl/certs/ca-certificates.crt", "licenses/convoy/LICENSE", "licenses/go/LICENSE",
		"licenses/github.com/coder/websocket/LICENSE.txt", "licenses/k8s.io/client-go/LICENSE",
	} {
		if got.files[path] == nil {
			t.Errorf("%s is missing", path)
		}
	}
	if mode := got.files["convoy-"+name].Mode; mode != 0o755 {
		t.Errorf("the program has mode %o", mode)
	}
}

// runAlone runs a program as the only file of its root, as the image's user.
func runAlone(t *testing.T, name string, binary []byte) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root of a process")
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "convoy-"+name), binary, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := empty; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "/convoy-"+name, "--version")
	command.Env, command.Dir = []string{}, "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: empty, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	out, err := command.CombinedOutput()
	if want := "convoy-" + name + " " + version + "\n"; err != nil || string(out) != want {
		t.Errorf("it says %q (%v), want %q", out, err, want)
	}
}

func TestDockerfilesBuildTheSamePrograms(t *testing.T) {
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindSubmatch(module)[1]
	for _, name := range []string{"hub", "agent"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(root, "Dockerfile."+name))
			if err != nil {
				t.Fatal(err)
			}
			text := regexp.MustCompile(`\s*\\\n\s*`).ReplaceAllString(string(raw), " ")
			at, err := time.Parse(time.RFC3339, created)
			if err != nil {
				t.Fatal(err)
			}
			args := buildArgs("${VERSION}", at)
			flags := strings.ReplaceAll(args[len(args)-1], created, "${CREATED}")
			flags = strings.Replace(flags, "=", `="`, 1) + `"`
			wants := []string{
				"RUN go " + strings.Join(args[:len(args)-1], " ") + " " + flags + " -o /image/convoy-" + name + " ./" + name + "\n",
				"ENV CGO_ENABLED=0\n", "\nFROM scratch\n", "\nUSER " + user + "\n", `ENTRYPOINT ["/convoy-` + name + `"]`,
				"--programs " + name + " --beside /image\n",
			}
			for key, value := range (program{name: name, options: &options{version: "${VERSION}"}}).labels() {
				wants = append(wants, key+`="`+value+`"`)
			}
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("Dockerfile.%s does not have %q", name, want)
				}
			}
			if !regexp.MustCompile(`(?m)^FROM golang:` + regexp.QuoteMeta(string(minor)) + `\.\d+ AS build$`).MatchString(text) {
				t.Errorf("Go is not pinned to a version of %s", minor)
			}
		})
	}
}

func TestTheSameFilesGiveTheSameLayerAndWrongFlagsAreNamed(t *testing.T) {
	l, err := newLayout(filepath.Join(t.TempDir(), "layout"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		t.Fatal(err)
	}
	layer, plain, err := l.layer(map[string]entry{"etc/a": fromBytes([]byte("b"))}, at)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := l.layer(map[string]entry{"etc/a": fromBytes([]byte("b"))}, at)
	if err != nil || again.Digest != layer.Digest || same != plain {
		t.Errorf("the same files give %s and %s (%v)", layer.Digest, again.Digest, err)
	}
	options, err := parse([]string{"--platforms", "linux/amd64,linux/arm64", "--created", created})
	if err != nil || len(options.platforms) != 2 {
		t.Fatalf("platforms %v, %v", options, err)
	}
	for _, args := range [][]string{{"--platforms", "windows/amd64"}, {"--programs", "shell"}, {"--created", "yesterday"}} {
		if _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v, want errUsage", args, err)
		}
	}
}

func TestPathsAreShownFromTheFolderOfTheSource(t *testing.T) {
	whole, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	p := program{name: "hub", options: &options{root: whole}}
	elsewhere := t.TempDir()
	for path, want := range map[string]string{
		"../../bin/images/convoy-hub.tar":            "bin/images/convoy-hub.tar",
		filepath.Join(whole, "bin/convoy-hub.tar"):   "bin/convoy-hub.tar",
		filepath.Join(elsewhere, "a/convoy-hub.tar"): filepath.Join(elsewhere, "a/convoy-hub.tar"),
	} {
		if got := p.shown(path); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}
