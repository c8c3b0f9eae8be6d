// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/gittest"
)

func TestTheCacheSurvivesARestartAndIsBounded(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	first := repo.CommitFiles("one", map[string]string{"a": strings.Repeat("1", 100_000)})
	second := repo.CommitFiles("two", map[string]string{"a": strings.Repeat("2", 100_000)})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t, func(o *source.Options) { o.CacheBytes = 150_000 })
	object := gitRepository(server.RepoURL(repo))
	if _, _, err := w.get(t, object, first, ""); err != nil {
		t.Fatal(err)
	}
	w.stop()
	if _, err := w.Snapshot(t.Context(), source.Want{Object: object}, source.Revision{Key: second}); !errors.Is(err, source.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
	// What a killed process left is removed.
	left := filepath.Join(w.options.CacheDir, "tmp-left")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	held, err := w.Snapshot(t.Context(), source.Want{Object: object}, source.Revision{Key: first})
	if err != nil || server.Uploads() != 1 {
		t.Fatalf("%d fetches, %v", server.Uploads(), err)
	}
	w.clock.Step(time.Second)
	if _, _, err := w.get(t, object, second, ""); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(w.options.CacheDir)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() }) // beside snapshots: digests of images
	if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), second) {
		t.Errorf("in the cache: %v, %v", entries, err)
	}
	// One that is being read stays readable.
	if files, err := untar(held, ""); err != nil || len(files["a"]) != 100_000 {
		t.Errorf("an evicted snapshot: %v", err)
	}
	// A corrupt one is fetched again.
	w.stop()
	if err := os.WriteFile(filepath.Join(w.options.CacheDir, entries[0].Name(), "index"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	uploads := server.Uploads()
	if _, files, err := w.get(t, object, second, ""); err != nil || len(files["a"]) != 100_000 || server.Uploads() != uploads+1 {
		t.Errorf("after damage: %v, %d fetches", err, server.Uploads())
	}
}

func TestWhatIsTooLargeIsRefusedByName(t *testing.T) {
	pid := os.Getpid()
	names := func(n int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("app/%d/%d.yaml", i%100, i))
		}
		return names
	}
	tests := []struct {
		name string
		make func(*gittest.Repo)
		text string
	}{
		{"a file of 60 MiB", func(r *gittest.Repo) { r.Import(strings.Repeat("x", 60<<20), "app/huge.yaml") }, "app/huge.yaml: the object is too large: 60 MiB; a file may have 32 MiB"},
		{"a file of 33 MiB as a delta of a small one", func(r *gittest.Repo) {
			base := strings.Repeat("0123456789abcdef", 1<<10)
			r.Write("app/a.yaml", base)
			r.Write("app/b.yaml", strings.Repeat(base, 33<<20/len(base)))
			r.Commit("large")
		}, "app/b.yaml: the object is too large"},
		{"more than 128 MiB together", func(r *gittest.Repo) { r.Import(strings.Repeat("x", 30<<20), names(5)...) }, "app/4/4.yaml: the files of the repository have more than 128 MiB together"},
		{"more than 10,000 files", func(r *gittest.Repo) { r.Import("x", names(10_001)...) }, "the repository has more than 10000 files"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			repo := gittest.NewRepo(t, root, "app")
			test.make(repo)
			server := gittest.NewHTTP(t, root)
			w := newWorld(t)
			start := time.Now()
			_, _, err := w.get(t, gitRepository(server.RepoURL(repo)), "", "app")
			wantFailure(t, err, v1alpha1.ReasonTooLarge, test.text)
			t.Logf("%s: %v", time.Since(start), err)
			if os.Getpid() != pid {
				t.Error("another process")
			}
		})
	}
}

func TestPathsAndLinks(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	for name, target := range map[string]string{
		"good/file.yaml": "../base/cm.yaml", "good/folder": "../base", "good/chain.yaml": "file.yaml",
		"out/x": "../../etc/passwd", "abs/x": "/etc/passwd", "loop/x": "y", "loop/y": "x", "dangling/x": "none", "circle/x": "../circle", "via": "good/folder",
	} {
		repo.Write(name, "")
		if err := os.Remove(repo.Path(name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, repo.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	repo.Write("base/cm.yaml", "a: b\n")
	repo.Write("base/sub/run.sh", "true\n")
	if err := os.Chmod(repo.Path("base/sub/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo.Commit("one")
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	tests := []struct {
		path, fails string
		want        []string
	}{
		{"good", "", []string{"good/chain.yaml", "good/file.yaml", "good/folder/cm.yaml", "good/folder/sub/run.sh"}},
		{"./good/../base/", "", []string{"base/cm.yaml", "base/sub/run.sh"}},
		{"base/cm.yaml", "", []string{"base/cm.yaml"}},
		{"via/sub", "", []string{"via/sub/run.sh"}},
		{"good/file.yaml", "", []string{"good/file.yaml"}},
		{"out", "out/x: it leaves the repository", nil},
		{"abs", "abs/x: it leaves the repository", nil},
		{"loop", "loop/x: it goes in circles", nil},
		{"dangling", "dangling/x: it leads to dangling/none, which does not exist", nil},
		{"circle", "circle/x: it leads to a folder that it is in", nil},
		{"none", "no such path in the source: none", nil},
		{"base/cm.yaml/x", "base/cm.yaml is a file", nil},
		{"../x", "not a path inside the source", nil},
		{"/base", "not a path inside the source", nil},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			_, files, err := w.get(t, object, "", test.path)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			var names []string
			for name := range files {
				names = append(names, name)
			}
			if err != nil || len(names) != len(test.want) {
				t.Errorf("got %v, %v", names, err)
			}
			for _, name := range test.want {
				if _, ok := files[name]; !ok {
					t.Errorf("%s is missing", name)
				}
			}
		})
	}
}

func TestThePathDigestFollowsWhatIsBelowThePathAlone(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	digest := func(path string, files map[string]string) string {
		t.Helper()
		commit := repo.CommitFiles("change", files)
		snapshot, err := w.Snapshot(t.Context(), source.Want{Object: object}, source.Revision{Key: commit})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := snapshot.PathDigest(path)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	first := digest("app", map[string]string{"app/a.yaml": "a", "README": "1"})
	if got := digest("app", map[string]string{"app/a.yaml": "a", "README": "2", "other/b.yaml": "x"}); got != first {
		t.Error("a change outside the path changed the digest")
	}
	if got := digest("moved/here", map[string]string{"moved/here/a.yaml": "a"}); got != first {
		t.Error("the same files under another path have another digest")
	}
	if got := digest("app", map[string]string{"app/a.yaml": "b"}); got == first {
		t.Error("a changed file has the same digest")
	}
	if got := digest("app", map[string]string{"app/b.yaml": "a"}); got == first {
		t.Error("a renamed file has the same digest")
	}
	if got := digest("app/a.yaml", map[string]string{"app/a.yaml": "a"}); got != first {
		t.Error("a file and the folder that holds nothing else differ")
	}
}

func TestASnapshotThatWasDamagedOnDiskIsNoticedAndFetchedAgain(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"app/a.yaml": "good: content\n"})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	snapshot, err := w.Snapshot(t.Context(), source.Want{Object: object}, source.Revision{Key: commit})
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(w.options.CacheDir, "*", "content"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := os.WriteFile(found[0], []byte("evil: content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err := untar(snapshot, "app"); err == nil || !strings.Contains(err.Error(), "corrupt: app/a.yaml") {
		t.Errorf("%v, %v", files, err)
	}
	if _, files, err := w.get(t, object, commit, "app"); err != nil || files["app/a.yaml"] != "good: content\n" || server.Uploads() != 2 {
		t.Errorf("%v, %v, %d fetches", files, err, server.Uploads())
	}
}
