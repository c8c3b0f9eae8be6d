// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// certificates is where Go looks for CA certificates first.
	certificates = "etc/ssl/certs/ca-certificates.crt"
	// licences of ours and of all that is linked in.
	licences = "licenses"
	// maxLicence is the largest file that is taken for a licence.
	maxLicence = 1 << 20
)

// program is hub or agent.
type program struct {
	name string
	*options
}

func (p program) binary() string { return "convoy-" + p.name }

// ldflags say version and time, and leave debug information out.
func ldflags(version string, created time.Time) string {
	const where = "kumodo.io/convoy/pkg/version."
	return "-s -w -X " + where + "Version=" + version + " -X " + where + "BuildTime=" + created.Format(time.RFC3339)
}

// buildArgs are those of go: the same in the Dockerfiles. No path of this machine
// and no state of a checkout gets into a program.
func buildArgs(version string, created time.Time) []string {
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + ldflags(version, created)}
}

// build builds the program for one platform and returns its path.
func (p program) build(ctx context.Context, on platform, dir string) (string, error) {
	out := filepath.Join(dir, p.binary()+"-"+on.os+"-"+on.arch)
	args := append(buildArgs(p.version, p.created), "-o", out, "./"+p.name)
	if _, err := p.run(ctx, []string{"GOOS=" + on.os, "GOARCH=" + on.arch}, args...); err != nil {
		return "", err
	}
	return out, nil
}

// run runs go in the folder of the source.
func (p program) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = p.root
	// GOFLAGS of the caller could change what is built.
	command.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0"), env...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, problems.String())
	}
	return out.Bytes(), nil
}

// beside are the files that the image has beside the program, by path.
func (p program) beside(ctx context.Context) (map[string][]byte, error) {
	files := map[string][]byte{certificates: authorities()}
	own, err := os.ReadFile(filepath.Join(p.root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("our licence: %w", err)
	}
	files[path.Join(licences, "convoy", "LICENSE")] = own
	return files, p.linked(ctx, files)
}

func (p program) writeBeside(ctx context.Context, to string) error {
	files, err := p.beside(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(at, files[name], 0o644); err != nil {
			return fmt.Errorf("write a file: %w", err)
		}
	}
	return nil
}

// authorities are the CA certificates that Mozilla trusts, pinned by go.sum. Those
// with constraints that a file of certificates cannot say are left out.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		out.Write(block)
	}
	return out.Bytes()
}

// licenceName is what a licence, or a note that has to go with the program, is called.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// errNoLicence means that something would be given on without its licence.
var errNoLicence = errors.New("no licence found")

// linked adds the licences of all modules that the program contains.
func (p program) linked(ctx context.Context, files map[string][]byte) error {
	list, err := p.run(ctx, nil, "list", "-deps", "-json=Module", "./"+p.name)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(list))
	seen := map[string]bool{}
	for {
		var one struct {
			Module *struct {
				Path, Dir string
				Main      bool
			}
		}
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return p.goLicence(ctx, files)
		}
		if err != nil {
			return fmt.Errorf("read the list of modules: %w", err)
		}
		if one.Module == nil || one.Module.Main || seen[one.Module.Path] {
			continue
		}
		seen[one.Module.Path] = true
		if err := addLicences(files, one.Module.Path, one.Module.Dir); err != nil {
			return err
		}
	}
}

// goLicence adds that of the standard library.
func (p program) goLicence(ctx context.Context, files map[string][]byte) error {
	out, err := p.run(ctx, nil, "env", "GOROOT")
	if err != nil {
		return err
	}
	return addLicences(files, "go", strings.TrimSpace(string(out)))
}

func addLicences(files map[string][]byte, module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", module, err)
	}
	found := false
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenceName.MatchString(entry.Name()) {
			continue
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxLicence {
			return fmt.Errorf("licence of %s: %s: too large, or %w", module, entry.Name(), err)
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("licence of %s: %w", module, err)
		}
		files[path.Join(licences, module, entry.Name())] = text
		found = true
	}
	if !found {
		return fmt.Errorf("%s: %w", module, errNoLicence)
	}
	return nil
}
