// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/hub/render"
	rendercontent "kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/source/snapshot"
	"kumodo.io/convoy/hub/store"
	memorystore "kumodo.io/convoy/hub/store/memory"
	"kumodo.io/convoy/hub/worker"
)

const (
	// renderRounds of each kind of content; the figure is of one.
	renderRounds = 20
	// renderClusters share one chart.
	renderClusters = 500
	// sampleEvery is how often the memory of the renderer and its workers is read.
	sampleEvery = 20 * time.Millisecond
)

// renders measures what a render costs: the work alone, in this process, and the whole
// way through a worker into a store; and how many of a fleet's renders are made.
func renders(ctx context.Context, b *bed) (err error) {
	r, err := newBenchRenderer(ctx, b.programs.Hub)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, sample := range []struct {
		name, goal string
		files      map[string]string
	}{
		{"1,000 manifests of 1 KiB", "< 100 ms", benchManifests(1000)},
		{"a small chart, 5 objects", "-", benchChart(5)},
		{"a chart of 200 objects", "-", benchChart(200)},
		{"a kustomization, 20 objects", "-", benchKustomization(20)},
	} {
		source, err := writeSource(filepath.Join(b.dir, "render-"+strings.ReplaceAll(sample.name, " ", "-")), sample.files)
		if err != nil {
			return err
		}
		pure, allocations, err := pureRender(sample.files)
		if err != nil {
			return fmt.Errorf("%s: %w", sample.name, err)
		}
		whole, err := r.whole(ctx, source)
		if err = errors.Join(err, source.Close()); err != nil {
			return fmt.Errorf("%s: %w", sample.name, err)
		}
		b.out.add("a render of "+sample.name, sample.goal, "%.1f ms through a worker into the store; the work alone %.1f ms, %d allocations", whole, pure, allocations)
		if sample.goal != "-" {
			b.out.unless(whole < 100, "a worker parses and writes, on as many cores as are free; all of the source and of the render cross a pipe, and the store writes it down.")
		}
	}
	return r.fleet(ctx, b)
}

// pureRender gives milliseconds and allocations of one render in this process.
func pureRender(sources map[string]string) (ms float64, allocations uint64, err error) {
	list := make([]files.File, 0, len(sources))
	for name, text := range sources {
		list = append(list, files.File{Name: name, Data: []byte(text)})
	}
	var before, after runtime.MemStats
	var took time.Duration
	for i := range renderRounds + 1 {
		if i == 1 { // the first one warms up
			runtime.GC()
			runtime.ReadMemStats(&before)
			took = 0
		}
		start := time.Now()
		if _, err := rendercontent.Render(benchJob(0), files.New(list, nil), nil); err != nil {
			return 0, 0, err
		}
		took += time.Since(start)
	}
	runtime.ReadMemStats(&after)
	return took.Seconds() * 1000 / renderRounds, (after.Mallocs - before.Mallocs) / renderRounds, nil
}

// benchRenderer is the hub's renderer with workers of the hub's program.
type benchRenderer struct {
	*render.Renderer
	cancel context.CancelFunc
	done   chan error
}

func newBenchRenderer(ctx context.Context, program string) (*benchRenderer, error) {
	backend := &memorystore.Backend{}
	made, err := render.New(render.Options{
		Objects: store.NewPlain(backend), Sealed: store.NewSealer(backend, store.Keys{Current: store.Key{ID: "bench"}}),
		MACKey: []byte("bench"), Worker: worker.Command{Path: program, Args: []string{render.WorkerName}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &benchRenderer{Renderer: made, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- made.Run(ctx) }()
	return r, nil
}

func (r *benchRenderer) close() error {
	r.cancel()
	return <-r.done
}

// whole gives the milliseconds of one render through a worker that is warm.
func (r *benchRenderer) whole(ctx context.Context, source render.Source) (float64, error) {
	var took time.Duration
	for i := range renderRounds + 1 {
		start := time.Now()
		if _, err := r.Render(ctx, render.Job{Tenant: "bench", Snapshot: source, Content: benchJob(0), Fresh: true}); err != nil {
			return 0, err
		}
		if i > 0 {
			took += time.Since(start)
		}
	}
	return took.Seconds() * 1000 / renderRounds, nil
}

// fleet renders one chart for many clusters at once.
func (r *benchRenderer) fleet(ctx context.Context, b *bed) error {
	source, err := writeSource(filepath.Join(b.dir, "render-fleet"), benchChart(200))
	if err != nil {
		return err
	}
	watch := watchMemory(ctx, familyMemory)
	var shared atomic.Int64
	failed := make([]error, renderClusters)
	start := time.Now()
	var group sync.WaitGroup
	for i := range renderClusters {
		group.Go(func() {
			result, err := r.Render(ctx, render.Job{Tenant: "fleet", Snapshot: source, Content: benchJob(i)})
			if result.Shared {
				shared.Add(1)
			}
			failed[i] = err
		})
	}
	group.Wait()
	took := time.Since(start)
	peak, err := watch()
	if err = errors.Join(err, errors.Join(failed...), source.Close()); err != nil {
		return err
	}
	percent := float64(shared.Load()) * 100 / renderClusters
	b.out.add("500 Releases of one chart of 200 objects for 500 clusters that differ in what it does not read", "peak <= 1 GiB, >= 95 % shared",
		"%.1f %% shared in %.2f s, peak of this process and its workers %d MiB", percent, took.Seconds(), peak>>20)
	b.out.unless(percent >= 95 && peak <= 1<<30, "a render is made anew for each set of facts that the chart reads; the peak is that of the workers that render side by side.")
	return nil
}

// watchMemory reads resident memory from time to time until the function that it gives
// is called, which says what the most was.
func watchMemory(ctx context.Context, read func() (int64, error)) func() (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var peak int64
	var failure error
	go func() {
		defer close(done)
		for ticker := time.NewTicker(sampleEvery); ; {
			total, err := read()
			peak, failure = max(peak, total), errors.Join(failure, err)
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
			}
		}
	}()
	return func() (int64, error) {
		cancel()
		<-done
		return peak, failure
	}
}

// familyMemory is that of this process and its children.
func familyMemory() (int64, error) {
	usage, err := harness.UsageOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	children, err := childrenMemory("self")
	return usage.RSS + children, err
}

// childrenMemory is that of a process's children.
func childrenMemory(pid string) (int64, error) {
	var total int64
	lists, err := filepath.Glob("/proc/" + pid + "/task/*/children")
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, word := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err != nil {
				return 0, err
			}
			if usage, err := harness.UsageOf(pid); err == nil { // it may have ended
				total += usage.RSS
			}
		}
	}
	return total, nil
}

// benchJob is that of one of many clusters.
func benchJob(i int) rendercontent.Job {
	return rendercontent.Job{
		Content: v1alpha1.ReleaseContent{Path: "app"}, Namespace: "bench",
		World: facts.World{
			Cluster: map[string]string{"name": fmt.Sprintf("edge-%d", i), "rack": fmt.Sprint(i)}, KubeVersion: fmt.Sprintf("v1.37.%d", i), APIVersions: []string{"apps/v1", "v1"},
			Self: facts.Self{Name: "shop", Namespace: "bench", TargetNamespace: "bench", UID: fmt.Sprintf("uid-%d", i)},
		},
	}
}

// writeSource keeps files as a source's cache does.
func writeSource(dir string, sources map[string]string) (*snapshot.Snapshot, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	w, err := snapshot.Create(dir, "bench")
	if err != nil {
		return nil, err
	}
	for _, name := range sortedNames(sources) {
		kept, err := w.Content([]byte(sources[name]))
		if err == nil {
			err = w.File(name, false, kept)
		}
		if err != nil {
			return nil, errors.Join(err, w.Abort())
		}
	}
	if err := w.Commit(); err != nil {
		return nil, err
	}
	return snapshot.Open(dir)
}
