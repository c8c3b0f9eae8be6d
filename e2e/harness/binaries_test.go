// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

func TestTools(t *testing.T) {
	root, err := RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "e2e", "kube", "go.mod")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(path, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the module lists the programs that are built and no others", func(t *testing.T) {
		var want, got []string
		for _, tool := range tools {
			want = append(want, tool.pkg)
		}
		for _, tool := range mod.Tool {
			got = append(got, tool.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
	})
	t.Run("Kubernetes and its staging modules are of the version that the programs report", func(t *testing.T) {
		for _, r := range mod.Require {
			if r.Mod.Path == "k8s.io/kubernetes" && r.Mod.Version != kubeVersion {
				t.Errorf("k8s.io/kubernetes is %s, want %s", r.Mod.Version, kubeVersion)
			}
		}
		if len(mod.Replace) == 0 {
			t.Error("no staging modules")
		}
		want := "v0." + strings.TrimPrefix(kubeVersion, "v1.")
		for _, r := range mod.Replace {
			if r.New.Version != want || r.New.Path != r.Old.Path {
				t.Errorf("%s is replaced by %s, want %s", r.Old.Path, r.New, want)
			}
		}
	})
}
