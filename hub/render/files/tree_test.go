// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/render/files"
)

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"

func tree(names ...string) *files.Tree {
	var list []files.File
	for _, name := range names {
		list = append(list, files.File{Name: name, Data: []byte(name)})
	}
	return files.New(list, nil)
}

func TestReadingSaysWhyNot(t *testing.T) {
	made := files.New([]files.File{{Name: "app/a.yaml", Data: []byte("a")}, {Name: "big.bin", Data: []byte(pointer)}},
		map[string]error{"vendor/lib": files.ErrSubmodule, "app/away": files.ErrLink})
	tests := []struct {
		name, path string
		want       error
	}{
		{"a file is read", "app/a.yaml", nil},
		{"a path with dots inside the tree is read", "app/../app/./a.yaml", nil},
		{"what is not there does not exist", "app/b.yaml", fs.ErrNotExist},
		{"a folder is none", "app", files.ErrFolder},
		{"GO-02: a pointer of Git LFS is named", "big.bin", files.ErrPointer},
		{"GO-02: a submodule is named", "vendor/lib", files.ErrSubmodule},
		{"GO-02: what is in a submodule is named by it", "vendor/lib/base/x.yaml", files.ErrSubmodule},
		{"KU-04: a link that cannot be followed is named", "app/away", files.ErrLink},
		{"KU-04: a path out of the tree is refused", "app/../../etc/passwd", files.ErrOutside},
		{"KU-04: an absolute path is refused", "/etc/passwd", files.ErrOutside},
		{"KU-04: a path of another system is refused", `app\a.yaml`, files.ErrOutside},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := made.Read(test.path)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if test.want == nil && string(data) != "a" {
				t.Errorf("got %q", data)
			}
		})
	}
}

func TestListsAreBelowTheirFolder(t *testing.T) {
	made := files.New([]files.File{{Name: "app/b.yaml"}, {Name: "app/a.yaml"}, {Name: "apple/c.yaml"}, {Name: "d.yaml"}}, map[string]error{"app/sub": files.ErrSubmodule})
	tests := []struct {
		name, dir string
		want      []string
	}{
		{"a folder has its files and faults, sorted", "app", []string{"app/a.yaml", "app/b.yaml", "app/sub"}},
		{"the whole tree is a dot", ".", []string{"app/a.yaml", "app/b.yaml", "app/sub", "apple/c.yaml", "d.yaml"}},
		{"a file is its own list", "d.yaml", []string{"d.yaml"}},
		{"what is below a fault is the fault", "app/sub/base", []string{"app/sub"}},
		{"what is not there is empty", "nothing", nil},
		{"what is outside is empty", "..", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, made.List(test.dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if !made.IsDir("app") || made.IsDir("d.yaml") || !made.IsFile("d.yaml") || made.IsFile("app") || !made.IsFile("app/sub") {
		t.Error("folders and files are mixed up")
	}
}

func TestWhatWasSeenIsNamedShortly(t *testing.T) {
	tests := []struct {
		name string
		look func(*files.Tree)
		want []string
	}{
		{"nothing", func(*files.Tree) {}, nil},
		{"files of two folders", func(t *files.Tree) { read(t, "a/1", "b/1") }, []string{"a/1", "b/1"}},
		{"a folder covers its files", func(t *files.Tree) { read(t, "a/1"); t.List("a") }, []string{"a"}},
		{"a folder does not cover its namesake", func(t *files.Tree) { t.List("a"); read(t, "a-b/1") }, []string{"a", "a-b/1"}},
		{"what is missing counts with its folder", func(t *files.Tree) { read(t, "b/missing/x") }, []string{"b"}},
		{"the whole tree", func(t *files.Tree) { t.List(".") }, []string{""}},
		{"many places are their folders", func(t *files.Tree) {
			for i := range 20 {
				read(t, fmt.Sprintf("many/deep/%d", i))
			}
			read(t, "a/1")
		}, []string{"a/1", "many/deep"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			names := []string{"a/1", "a-b/1", "b/1"}
			for i := range 20 {
				names = append(names, fmt.Sprintf("many/deep/%d", i))
			}
			made := tree(names...)
			test.look(made)
			if diff := cmp.Diff(test.want, made.Seen()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *files.Tree, names ...string) {
	for _, name := range names {
		_, _ = t.Read(name) // some are missing, on purpose
	}
}

func TestAPartTellsWhatWasLookedForElsewhere(t *testing.T) {
	part := files.NewPart([]files.File{{Name: "over/prod/kustomization.yaml"}}, nil, []string{"over/prod", "gone"})
	read(part, "over/prod/kustomization.yaml", "over/prod/none", "gone/x", "base/kustomization.yaml")
	part.List("base")
	part.IsDir("over")
	part.IsDir(".")
	if diff := cmp.Diff([]string{"base", "base/kustomization.yaml"}, part.Missing()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
