// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/gittest"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/memory"
	"kumodo.io/convoy/hub/store/storetest"
	"kumodo.io/convoy/pkg/manifest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case render.WorkerName:
			os.Exit(render.Main(os.Args[2:], os.Stdin, os.Stdout))
		case source.WorkerName:
			os.Exit(source.Main(os.Args[2:], os.Stdin, os.Stdout))
		case dyingWorker:
			os.Exit(7)
		}
	}
	render.EndSoon()
	goleak.VerifyTestMain(m)
}

const dyingWorker = "dying-worker"

type world struct {
	*render.Renderer
	backend *memory.Backend
	objects store.Store
	sealed  store.Store
}

func newWorld(t testing.TB, change ...func(*render.Options)) *world {
	t.Helper()
	w := &world{backend: &memory.Backend{}}
	w.objects = store.NewPlain(w.backend)
	w.sealed = store.NewSealer(w.backend, store.Keys{Current: store.Key{ID: "k"}})
	options := render.Options{Objects: w.objects, Sealed: w.sealed, MACKey: []byte("mac key"), Slots: 2}
	for _, f := range change {
		f(&options)
	}
	r, err := render.New(options)
	if err != nil {
		t.Fatal(err)
	}
	w.Renderer = r
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) render(t testing.TB, files render.Source) (render.Result, error) {
	t.Helper()
	work := job("team", files)
	work.Fresh = true // what is tested is the render
	return w.Render(t.Context(), work)
}

// objectsOf reads a render back, sealed values included.
func (w *world) objectsOf(t testing.TB, result render.Result) map[string]map[string]any {
	t.Helper()
	objects, _, err := storetest.ReadAll(t.Context(), w.objects, result.Objects.Digest)
	if err != nil {
		t.Fatal(err)
	}
	var sealed io.Reader
	if result.Sealed != nil {
		plain, _, err := storetest.ReadAll(t.Context(), w.sealed, result.Sealed.Digest)
		if err != nil {
			t.Fatal(err)
		}
		sealed = bytes.NewReader(plain)
	}
	reader, err := manifest.NewReader(bytes.NewReader(objects), sealed)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all[entry.String()], err = entry.Object(); err != nil {
			t.Fatal(err)
		}
	}
}

func wantFailure(t *testing.T, err error, reason string, texts ...string) {
	t.Helper()
	var e *render.Error
	if !errors.As(err, &e) || e.Reason() != reason {
		t.Fatalf("got %v, want %s", err, reason)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// caseTree reads the files of one step of a case.
func caseTree(t *testing.T, id, step string) tree {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../../e2e/testdata/cases", id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document struct {
			Step string `yaml:"step"`
			Tree tree   `yaml:"tree"`
		}
		if err := decoder.Decode(&document); err != nil {
			t.Fatalf("case %s has no step %s: %v", id, step, err)
		}
		if document.Step == step {
			return document.Tree
		}
	}
}

const secretText = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter2}\n"

func TestARenderIsTwoLayersAndShowsNoSecret(t *testing.T) {
	w := newWorld(t)
	files := tree{"app/secret.yaml": secretText, "app/cm.yaml": gittest.ConfigMap("cm", 200), "app/notes.md": "--- not yaml: ["}
	first, err := w.render(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if first.Count != 2 || first.Sealed == nil {
		t.Errorf("result %+v", first)
	}
	objects, _, err := storetest.ReadAll(t.Context(), w.objects, first.Objects.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(objects, []byte("hunter2")) || bytes.Contains(objects, []byte("aHVudGVyMg")) {
		t.Errorf("the objects layer has the password: %s", objects)
	}
	want := map[string]any{"password": "aHVudGVyMg=="}
	if diff := cmp.Diff(want, w.objectsOf(t, first)["Secret login"]["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	again, err := w.render(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if again.Objects != first.Objects {
		t.Error("the same files have another digest")
	}
	if again.Sealed.Digest == first.Sealed.Digest {
		t.Error("the sealed layer of another render has the same digest: it can be guessed")
	}
	plain, err := w.render(t, tree{"app/cm.yaml": gittest.ConfigMap("cm", 200)})
	if err != nil || plain.Sealed != nil {
		t.Errorf("without a Secret: %+v, %v", plain, err)
	}
}

func TestARenderEqualsThatOfThePurePackage(t *testing.T) {
	w := newWorld(t)
	files := tree{}
	for i := range 50 {
		files[fmt.Sprintf("app/%d.yaml", i)] = gittest.ConfigMap(fmt.Sprintf("cm-%d", i), 500)
	}
	files["app/secret.yaml"] = secretText
	result, err := w.render(t, files)
	if err != nil {
		t.Fatal(err)
	}
	set := &manifest.Set{Namespace: "team"}
	for name, text := range files {
		objects, err := manifest.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		set.Objects = append(set.Objects, objects...)
	}
	var objects bytes.Buffer
	if _, err := set.Write(&objects, io.Discard, []byte("mac key"), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	got, _, err := storetest.ReadAll(t.Context(), w.objects, result.Objects.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects.String(), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPR06EmptyRendersAreToldFromMissingPaths(t *testing.T) {
	w := newWorld(t)
	for _, step := range []string{"v2", "v3"} {
		_, err := w.render(t, caseTree(t, "PR-06", step))
		wantFailure(t, err, "EmptyRender", "there are no objects under the path")
		work := job("team", caseTree(t, "PR-06", step))
		work.Content.Content.Manifests = &corev1alpha1.ManifestsContent{}
		_, err = w.Render(t.Context(), work)
		wantFailure(t, err, "EmptyRender", "there are no objects under the path")
	}
	for _, step := range []string{"v2", "v3"} {
		work := job("team", caseTree(t, "PR-06", step))
		work.Content.AllowEmpty = true
		result, err := w.Render(t.Context(), work)
		if err != nil || result.Count != 0 || result.Objects.Digest == "" {
			t.Errorf("with the permission to be empty: %+v, %v", result, err)
		}
	}
	// v4 needs a tree in which the path is missing, and so a snapshot.
	snapshot := snapshotOf(t, caseTree(t, "PR-06", "v4"))
	_, err := w.render(t, snapshot)
	wantFailure(t, err, "PathNotFound", "no such path in the source: app")
	work := job("team", snapshot)
	work.Content.Content.Path = "moved"
	if _, err := w.Render(t.Context(), work); err != nil {
		t.Error(err)
	}
}

// snapshotOf puts files into a repository and fetches it.
func snapshotOf(t *testing.T, files tree) *source.Snapshot {
	t.Helper()
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("files", files)
	server := gittest.NewHTTP(t, root)
	c, err := source.New(source.Options{CacheDir: t.TempDir(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	object := &v1alpha1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}, Spec: v1alpha1.GitRepositorySpec{URL: server.RepoURL(repo)}}
	snapshot, err := c.Snapshot(t.Context(), source.Want{Object: object}, source.Revision{Key: commit})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestYA01YA04YA05TheRawFilesOfTheCasesRender(t *testing.T) {
	w := newWorld(t)
	for id, count := range map[string]int{"YA-01": 1, "YA-02": 4, "YA-04": 9, "YA-05": 1} {
		result, err := w.render(t, caseTree(t, id, "v1"))
		if err != nil || result.Count != count {
			t.Errorf("%s: %d objects, %v", id, result.Count, err)
		}
	}
}

func TestARenderThatIsGivenUpEnds(t *testing.T) {
	w := newWorld(t)
	hold := newHeld()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.Render(ctx, job("a", hold))
		done <- err
	}()
	<-hold.begun
	cancel()
	close(hold.release)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkRender1000(b *testing.B) {
	w := newWorld(b)
	files := tree{}
	for i := range 1000 {
		files[fmt.Sprintf("app/%d.yaml", i)] = benchFile(i)
	}
	if _, err := w.render(b, files); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := w.render(b, files); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRenderOne(b *testing.B) {
	w := newWorld(b)
	files := tree{"app/cm.yaml": benchFile(1)}
	if _, err := w.render(b, files); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.render(b, files); err != nil {
			b.Fatal(err)
		}
	}
}

// benchFile is a ConfigMap of about 1 KiB.
func benchFile(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm-%04d\n  labels:\n    app: bench\ndata:\n", i)
	for k := range 16 {
		fmt.Fprintf(&b, "  key-%02d: \"%s\"\n", k, strings.Repeat("v", 44))
	}
	return b.String()
}
