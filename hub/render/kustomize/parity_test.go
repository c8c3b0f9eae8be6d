// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kumodo.io/convoy/pkg/manifest"
)

// Where `make test-parity` says that kustomize is, and that what it says is to be
// written down.
const (
	kustomizeProgram = "CONVOY_PARITY_KUSTOMIZE"
	updateGolden     = "CONVOY_PARITY_UPDATE"
)

// TestBuildsAreThoseOfKustomizeBuild holds every kustomization of testdata against
// what the program of the same version made of it, object by object.
func TestBuildsAreThoseOfKustomizeBuild(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 12 {
		t.Fatalf("found %v, %v", names, err)
	}
	for _, name := range names {
		short := strings.TrimSuffix(filepath.Base(name), ".txtar")
		t.Run(short, func(t *testing.T) {
			archive, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "golden", short+".yaml")
			program(t, archive, golden)
			theirs, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := manifest.Parse("kustomize", theirs)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]map[string]any{}
			for _, object := range parsed {
				want[object.Kind+" "+object.Namespace+"/"+object.Name] = object.Content
			}
			got, err := build(t, tree(string(archive)), "app")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(sameNumber)); diff != "" {
				t.Errorf("(-kustomize +ours):\n%s", diff)
			}
		})
	}
}

// sameNumber: kustomize writes some as 1e-06 that we leave as 0.000001.
func sameNumber(a, b json.Number) bool {
	x, _, errX := big.ParseFloat(string(a), 10, 256, big.ToNearestEven)
	y, _, errY := big.ParseFloat(string(b), 10, 256, big.ToNearestEven)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// program runs the real one, if there is one, and holds it against what was written
// down.
func program(t *testing.T, archive []byte, golden string) {
	t.Helper()
	path := os.Getenv(kustomizeProgram)
	if path == "" {
		return
	}
	folder := t.TempDir()
	for _, file := range txtar.Parse(archive).Files {
		name := filepath.Join(folder, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, "build", filepath.Join(folder, "app"))
	command.Env = []string{"HOME=" + folder, "PATH="}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("kustomize: %v\n%s", err, &stderr)
	}
	if os.Getenv(updateGolden) != "" {
		if err := os.WriteFile(golden, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(out)); diff != "" {
		t.Errorf("kustomize says something else than it did (-written down +now); make test-parity UPDATE=1 writes it down:\n%s", diff)
	}
}
