// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source/gittest"
	"kumodo.io/convoy/hub/store"
)

func TestBrokenManifestsNameFileDocumentAndLine(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		id, step string
		texts    []string
	}{
		{"YA-01", "v2", []string{"app/bad1.yaml, document 1, line 4: ConfigMap t-ya-01/bad1: data.port", "app/bad2.yaml, document 1, line 3", "app/bad3.yaml, document 1, line 4"}},
		{"YA-05", "v2", []string{"app/b.yaml, document 2, line 7"}},
	} {
		_, err := w.render(t, caseTree(t, step.id, step.step))
		wantFailure(t, err, "RenderFailed", step.texts...)
	}
	_, err := w.render(t, tree{"app/a.yaml": gittest.ConfigMap("cm", 100), "app/b.yaml": gittest.ConfigMap("cm", 100)})
	wantFailure(t, err, "RenderFailed", "app/b.yaml, document 1, line 1: ConfigMap cm: the same object twice: also in app/a.yaml")
	_, err = w.render(t, tree{"app/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: 4711}\n"})
	wantFailure(t, err, "RenderFailed", "stringData.pin")
	if strings.Contains(err.Error(), "4711") {
		t.Errorf("the error has the value: %v", err)
	}
}

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func TestGO02PointersOfGitLFSAndSubmodulesAreNamed(t *testing.T) {
	w := newWorld(t)
	files := caseTree(t, "GO-02", "v1")
	if result, err := w.render(t, files); err != nil || result.Count != 2 {
		t.Errorf("a manifest that mentions a pointer: %+v, %v", result, err)
	}
	files["app/cm2.yaml"] = pointer
	_, err := w.render(t, files)
	wantFailure(t, err, "RenderFailed", "app/cm2.yaml: is a Git LFS pointer")

	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"app/cm.yaml": gittest.ConfigMap("cm", 100)})
	_, err = w.render(t, withSubmodule{tree{"app/cm.yaml": gittest.ConfigMap("cm", 100)}})
	wantFailure(t, err, "RenderFailed", "app/base: is a submodule")
}

type withSubmodule struct{ tree }

func (f withSubmodule) Part([]string) (io.ReadCloser, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "app/base/", Format: tar.FormatPAX, PAXRecords: map[string]string{"CONVOY.submodule": strings.Repeat("5", 40)}})
	return io.NopCloser(&b), errors.Join(err, w.Close())
}

func TestAFailingStoreIsToldAsSuchAndKeepsNothing(t *testing.T) {
	full := errors.New("no space left")
	w := newWorld(t, func(o *render.Options) { o.Sealed = failing{o.Sealed, full} })
	_, err := w.render(t, tree{"app/s.yaml": secretText})
	wantFailure(t, err, "StoreFailed", "no space left")
	w = newWorld(t, func(o *render.Options) { o.Objects = failing{o.Objects, full} })
	files := tree{}
	for i := range 500 {
		files[fmt.Sprintf("app/%d.yaml", i)] = gittest.ConfigMap(fmt.Sprintf("cm-%d", i), 1000)
	}
	_, err = w.render(t, files)
	wantFailure(t, err, "StoreFailed", "no space left")
	if err := w.backend.List(t.Context(), "sha256", func(name string, _ time.Time) error { return errors.New(name) }); err != nil {
		t.Errorf("left in the store: %v", err)
	}
}

type failing struct {
	store.Store
	err error
}

func (f failing) Put(_ context.Context, r io.Reader) (store.Descriptor, error) {
	// It fails in the middle, as a full disk does.
	if _, err := io.CopyN(io.Discard, r, 1); err != nil {
		return store.Descriptor{}, err
	}
	return store.Descriptor{}, f.err
}

func TestABrokenSnapshotIsToldAsSuch(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("bad sector")
	_, err := w.render(t, brokenSource{tree{"app/a.yaml": ""}, broken})
	wantFailure(t, err, "FetchFailed", "bad sector")
	if _, err := w.render(t, tree{"app/a.yaml": gittest.ConfigMap("a", 100)}); err != nil {
		t.Error(err)
	}
}

type brokenSource struct {
	tree
	err error
}

func (b brokenSource) Part([]string) (io.ReadCloser, error) {
	return io.NopCloser(iotest.ErrReader(b.err)), nil
}
