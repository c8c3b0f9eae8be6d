// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/worker"
	"kumodo.io/convoy/pkg/manifest"
)

// WorkerName is the first argument of a render worker's process.
const WorkerName = "render-worker"

// workerJob goes to a render worker; the files follow as a tar.
type workerJob struct {
	content.Job
	// Scope is what of the source the tar has.
	Scope []string `json:"scope"`
}

// workerDone comes back after the stream of manifest.Set.WritePlain.
type workerDone struct {
	Count        int      `json:"count"`
	Kind         string   `json:"kind"`
	Reads        []string `json:"reads,omitempty"`
	Chart        string   `json:"chart,omitempty"`
	ChartVersion string   `json:"chartVersion,omitempty"`
	AppVersion   string   `json:"appVersion,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
	Hooks        int      `json:"hooks,omitempty"`
}

// workerFailure comes back when there is no render.
type workerFailure struct {
	Reason  string   `json:"reason"`
	Message string   `json:"message"`
	Reads   []string `json:"reads,omitempty"`
	Needs   needs    `json:"needs"`
}

// Main is the render worker: it confines itself, renders what its parent sends,
// and gives an exit code. args are those after WorkerName.
func Main(args []string, stdin io.Reader, stdout io.Writer) int {
	limits, err := worker.Confine(args, worker.BarrierAll)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Helm warns of values through the one, kustomize of old fields through the other,
	// and what a worker has written is repeated when it dies. The runtime's own last
	// words do not go through either. Writing to no file is an error that both ignore.
	log.SetOutput(io.Discard)
	os.Stderr = nil
	if err := worker.Serve(stdin, stdout, limits, work); err != nil {
		return 1
	}
	return 0
}

func work(call *worker.Call) (done, failure any) {
	var job workerJob
	if err := json.Unmarshal(call.Job, &job); err != nil {
		return nil, workerFailure{Reason: v1alpha1.ReasonRenderFailed, Message: "a job that cannot be read"}
	}
	result, err := renderTar(call, &job)
	if err == nil {
		var summary manifest.Summary
		if summary, err = result.Set.WritePlain(call.Out); err == nil {
			return workerDone{
				Count: summary.Count, Kind: result.Kind, Reads: result.Reads, Chart: result.Chart,
				ChartVersion: result.ChartVersion, AppVersion: result.AppVersion, Warnings: result.Warnings, Hooks: result.Hooks,
			}, nil
		}
	}
	told := workerFailure{Reason: v1alpha1.ReasonRenderFailed, Message: err.Error()}
	switch {
	case errors.Is(err, content.ErrIncomplete):
		return nil, workerFailure{Needs: needs(result.Needs)}
	case errors.Is(err, content.ErrEmpty):
		told.Reason = v1alpha1.ReasonEmptyRender
	case errors.Is(err, content.ErrPath):
		told.Reason = v1alpha1.ReasonPathNotFound
	}
	if len(told.Message) > maxMessageBytes {
		told.Message = told.Message[:maxMessageBytes] + "..."
	}
	if result != nil {
		told.Reads = result.Reads
	}
	return nil, told
}

func renderTar(call *worker.Call, job *workerJob) (*content.Result, error) {
	keep := func(string) bool { return true }
	if job.Content.Manifests != nil && len(job.Mutations) == 0 {
		keep = manifest.IsManifest
	}
	large := map[string]bool{}
	tree, err := files.ReadTar(call.Data, job.Scope, keep)
	if err != nil {
		return nil, err
	}
	for _, file := range tree.Large(announcedBytes) {
		large[file] = true
	}
	var mu sync.Mutex // files are parsed side by side
	return content.Render(job.Job, tree, func(name string) {
		if !large[name] && manifest.IsManifest(name) {
			return // charts and kustomizations are announced whatever their size
		}
		mu.Lock()
		defer mu.Unlock()
		// A parent that is gone is noticed when the answer is written.
		_ = call.At(name)
	})
}
