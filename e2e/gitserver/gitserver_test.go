// SPDX-License-Identifier: Apache-2.0

package gitserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kumodo.io/convoy/e2e/gitserver"
)

func TestARepositoryCanBeClonedOverHTTPS(t *testing.T) {
	s, err := gitserver.Start(t.Context(), t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	repo, err := s.Repository(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Commit(t.Context(), "first", map[string]string{"old.yaml": "a: 1\n"}); err != nil {
		t.Fatal(err)
	}
	want, err := repo.Commit(t.Context(), "second", map[string]string{"app/new.yaml": "b: 2\n"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, s.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	clone := exec.CommandContext(t.Context(), "git", "clone", "-q", s.URL("app"), filepath.Join(dir, "clone"))
	clone.Env = append(os.Environ(), "GIT_SSL_CAINFO="+ca, "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "clone", "app", "new.yaml")); err != nil {
		t.Errorf("commit %s: %v", want, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "clone", "old.yaml")); !os.IsNotExist(err) {
		t.Errorf("old.yaml is still there: %v", err)
	}
	if s.Requests() == 0 {
		t.Error("no request was counted")
	}
}
