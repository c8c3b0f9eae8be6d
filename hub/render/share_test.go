// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/source/gittest"
	"kumodo.io/convoy/hub/source/snapshot"
)

// counted counts how often its files are sent to a worker.
type counted struct {
	tree
	sent *atomic.Int64
}

func (c counted) Part(paths []string) (io.ReadCloser, error) {
	c.sent.Add(1)
	return c.tree.Part(paths)
}

func countedTree(files tree) counted { return counted{files, &atomic.Int64{}} }

var regional = tree{
	"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.1.0}",
	"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n" +
		"data: {apps: '{{ .Capabilities.APIVersions.Has \"apps/v1\" }}', batch: '{{ .Capabilities.APIVersions.Has \"batch/v1\" }}'}\n",
}

func TestClustersThatDifferInWhatNobodyReadsShareOneRender(t *testing.T) {
	w := newWorld(t)
	files := countedTree(regional)
	const clusters = 500
	digests := make([]string, clusters)
	var made atomic.Int64
	var group sync.WaitGroup
	for i := range clusters {
		group.Go(func() {
			work := job("team", files)
			work.Content.World.Cluster = map[string]string{"name": fmt.Sprintf("edge-%d", i), "rack": fmt.Sprint(i)}
			work.Content.World.APIVersions = []string{"v1", "apps/v1", fmt.Sprintf("example.com/v%d", i)}
			work.Content.World.KubeVersion = fmt.Sprintf("v1.37.%d", i)
			result, err := w.Render(t.Context(), work)
			if err != nil {
				t.Error(err)
				return
			}
			if !result.Shared {
				made.Add(1)
			}
			digests[i] = result.Objects.Digest
		})
	}
	group.Wait()
	if made.Load() != 1 || files.sent.Load() != 1 {
		t.Errorf("%d renders, %d sent", made.Load(), files.sent.Load())
	}
	if list := slices.Compact(digests); len(list) != 1 {
		t.Errorf("digests %v", list)
	}
	work := job("team", files)
	work.Content.World.APIVersions = []string{"v1"}
	result, err := w.Render(t.Context(), work)
	if err != nil || result.Shared || result.Objects.Digest == digests[0] {
		t.Errorf("a cluster without apps/v1: shared %t, %v", result.Shared, err)
	}
	if diff := cmp.Diff([]string{"capabilities.api:apps/v1", "capabilities.api:batch/v1", "self.releaseName"}, result.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if other, err := w.Render(t.Context(), job("other", files)); err != nil || other.Shared {
		t.Errorf("another tenant: shared %t, %v", other.Shared, err)
	}
}

func TestARenderWhoseBlobsAreGoneIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	work := job("team", tree{"app/a.yaml": gittest.ConfigMap("a", 100)})
	first, err := w.Render(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Render(t.Context(), work); err != nil || !again.Shared {
		t.Errorf("shared %t, %v", again.Shared, err)
	}
	if err := w.objects.Delete(t.Context(), first.Objects.Digest); err != nil {
		t.Fatal(err)
	}
	again, err := w.Render(t.Context(), work)
	if err != nil || again.Shared || again.Objects != first.Objects {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestARandomChartIsRenderedForEachReleaseByItself(t *testing.T) {
	w := newWorld(t)
	files := tree{
		"app/Chart.yaml":            "{apiVersion: v2, name: app, version: 0.1.0}",
		"app/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: '{{ randAlphaNum 20 }}'}\n",
	}
	first, err := w.Render(t.Context(), job("team", files))
	if err != nil || !slices.Contains(first.Reads, "random") {
		t.Fatalf("%+v, %v", first, err)
	}
	work := job("team", files)
	work.Content.World.Self.UID = "u-2"
	other, err := w.Render(t.Context(), work)
	if err != nil || other.Shared || other.Objects.Digest == first.Objects.Digest || other.InputsHash == first.InputsHash {
		t.Errorf("another Release: %+v, %v", other, err)
	}
	if again, err := w.Render(t.Context(), job("team", files)); err != nil || !again.Shared || again.Objects != first.Objects {
		t.Errorf("the same Release: %+v, %v", again, err)
	}
	hash, err := w.InputsHash(t.Context(), job("team", files), first.Reads)
	if err != nil || hash != first.InputsHash {
		t.Errorf("its hash: %s, %v, want %s", hash, err, first.InputsHash)
	}
}

func TestKU04ABaseElsewhereInTheSourceIsFoundAndCounts(t *testing.T) {
	w := newWorld(t)
	files := tree{
		"app/kustomization.yaml":       "{resources: [../bases/web], namePrefix: x-}",
		"bases/web/kustomization.yaml": "{resources: [cm.yaml, ../../common]}", "bases/web/cm.yaml": gittest.ConfigMap("web", 100),
		"common/kustomization.yaml": "{resources: [cm.yaml]}", "common/cm.yaml": gittest.ConfigMap("common", 100),
		"unrelated/big.yaml": strings.Repeat("x", 1<<20),
	}
	first, err := w.Render(t.Context(), job("team", files))
	if err != nil || first.Count != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	if diff := cmp.Diff([]string{"path:bases/web", "path:common"}, first.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	files["unrelated/big.yaml"] = "changed"
	if again, err := w.Render(t.Context(), job("team", files)); err != nil || !again.Shared {
		t.Errorf("something else changed: shared %t, %v", again.Shared, err)
	}
	files["common/cm.yaml"] = gittest.ConfigMap("changed", 100)
	if again, err := w.Render(t.Context(), job("team", files)); err != nil || again.Shared || again.InputsHash == first.InputsHash {
		t.Errorf("a base changed: %+v, %v", again, err)
	}
}

type images struct {
	mu    sync.Mutex
	asked []string
}

var errNoImage = errors.New("the registry does not know it")

func (i *images) Digest(_ context.Context, reference string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, reference)
	if reference == "missing:1" {
		return "", errNoImage
	}
	return "sha256:" + strings.Repeat("a", 64), nil
}

func TestImagesAreLookedUpBetweenTwoRounds(t *testing.T) {
	w := newWorld(t)
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 'nginx:1'}]}\n"
	work := job("team", tree{"app/pod.yaml": pod})
	work.Content.Pin = true
	known := &images{}
	work.Images = known
	result, err := w.Render(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	got := w.objectsOf(t, result)["Pod web"]["spec"]
	want := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "nginx:1@sha256:" + strings.Repeat("a", 64)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, err := w.Render(t.Context(), work); err != nil || !again.Shared {
		t.Errorf("shared %t, %v", again.Shared, err)
	}
	work.Snapshot = tree{"app/pod.yaml": strings.ReplaceAll(pod, "nginx:1", "missing:1")}
	if _, err := w.Render(t.Context(), work); !errors.Is(err, errNoImage) {
		t.Errorf("got %v", err)
	}
}

func TestTheInputsHashFollowsItsInputs(t *testing.T) {
	w := newWorld(t)
	base := func(change ...func(*render.Job)) string {
		t.Helper()
		work := job("a", fixed("sha256:1"))
		work.Content.Content.Manifests = &v1alpha1.ManifestsContent{}
		for _, f := range change {
			f(&work)
		}
		hash, err := w.InputsHash(t.Context(), work, nil)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	if got := base(); got != "sha256:b9809cb99b723cfd990e9214018c1d707bcd4b2c5505beb07e4cd3d942d7ff76" {
		t.Errorf("it is not what it was: %s: all Releases would be rendered again", got)
	}
	seen := map[string]string{base(): "as it is"}
	for name, change := range map[string]func(*render.Job){
		"other files":       func(j *render.Job) { j.Snapshot = fixed("sha256:2") },
		"another kind":      func(j *render.Job) { j.Content.Content.Manifests = nil },
		"another namespace": func(j *render.Job) { j.Content.Namespace = "b" },
		"a mutation": func(j *render.Job) {
			j.Content.Mutations = []content.Mutation{{Type: "mergePatch", Bodies: []string{"{}"}}}
		},
		"one out of a Secret": func(j *render.Job) {
			j.Content.Mutations = []content.Mutation{{Type: "mergePatch", Bodies: []string{"{}"}, Secret: true}}
		},
		"a hook": func(j *render.Job) {
			j.Content.Hooks = []content.Hook{{Name: "h", Phases: []string{"PreSync"}, Object: "{}"}}
		},
		"a hook in another wave": func(j *render.Job) {
			j.Content.Hooks = []content.Hook{{Name: "h", Phases: []string{"PreSync"}, Wave: 1, Object: "{}"}}
		},
		"images by digest":       func(j *render.Job) { j.Content.Pin = true },
		"values":                 func(j *render.Job) { j.Content.Values = []content.Values{{Text: "a: 1"}} },
		"the same from a Secret": func(j *render.Job) { j.Content.Values = []content.Values{{Text: "a: 1", Secret: true}} },
	} {
		hash := base(change)
		if other, twice := seen[hash]; twice {
			t.Errorf("%s: as %s", name, other)
		}
		seen[hash] = name
	}
	for name, change := range map[string]func(*render.Job){
		"the world alone":       func(j *render.Job) { j.Content.World.Cluster = map[string]string{"name": "other"} },
		"words for messages":    func(j *render.Job) { j.Content.Content.Path = "./app" },
		"leave to have nothing": func(j *render.Job) { j.Content.AllowEmpty = true },
	} {
		if base(change) != base() {
			t.Errorf("%s changes it", name)
		}
	}
}

// fixed is a source of which the digest alone matters.
type fixed string

func (f fixed) Part(paths []string) (io.ReadCloser, error) {
	return tree{}.Part(paths)
}
func (f fixed) Kind(string) (snapshot.Kind, error) { return snapshot.Folder, nil }
func (f fixed) InputDigest(string) (string, error) { return string(f), nil }

// lacking are the charts that a chart lacks.
type lacking struct {
	tree
	asked int
}

func (l *lacking) Charts(context.Context, string) (render.Source, error) {
	l.asked++
	return l.tree, nil
}

func TestChartsThatAreMissingAreFetchedAndCount(t *testing.T) {
	w := newWorld(t)
	files := tree{
		"app/Chart.yaml":        "{apiVersion: v2, name: app, version: 0.1.0, dependencies: [{name: sub, version: 0.1.0, repository: 'https://charts.example'}]}",
		"app/templates/cm.yaml": gittest.ConfigMap("parent", 100),
	}
	if _, err := w.Render(t.Context(), job("team", files)); err == nil {
		t.Error("a missing chart that cannot be fetched was no fault")
	}
	missing := &lacking{tree: tree{"app/charts/sub/Chart.yaml": "{apiVersion: v2, name: sub, version: 0.1.0}", "app/charts/sub/templates/cm.yaml": gittest.ConfigMap("child", 100)}}
	work := job("team", files)
	work.Charts = missing
	first, err := w.Render(t.Context(), work)
	if err != nil || first.Count != 2 || !slices.Contains(first.Reads, "charts") {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := w.Render(t.Context(), work); err != nil || !again.Shared {
		t.Errorf("shared %t, %v", again.Shared, err)
	}
	missing.tree["app/charts/sub/templates/cm.yaml"] = gittest.ConfigMap("changed", 100)
	if again, err := w.Render(t.Context(), work); err != nil || again.Shared {
		t.Errorf("another chart: shared %t, %v", again.Shared, err)
	}
}
