// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/worker"
	"kumodo.io/convoy/pkg/manifest"
)

// WorkerName is the first argument of a render worker's process.
const WorkerName = "render-worker"

// workerJob goes to a render worker; the files follow as a tar.
type workerJob struct {
	Namespace  string `json:"namespace"`
	AllowEmpty bool   `json:"allowEmpty,omitempty"`
}

// workerDone comes back after the stream of manifest.Set.WritePlain.
type workerDone struct {
	Count int `json:"count"`
}

// workerFailure comes back when there is no render.
type workerFailure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Main is the render worker: it confines itself, renders what its parent sends,
// and gives an exit code. args are those after WorkerName.
func Main(args []string, stdin io.Reader, stdout io.Writer) int {
	limits, err := worker.Confine(args, worker.BarrierAll)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
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
	summary, err := renderTar(call, job)
	if err == nil {
		return workerDone{Count: summary.Count}, nil
	}
	reason := v1alpha1.ReasonRenderFailed
	if errors.Is(err, content.ErrEmpty) {
		reason = v1alpha1.ReasonEmptyRender
	}
	message := err.Error()
	if len(message) > maxMessageBytes {
		message = message[:maxMessageBytes] + "..."
	}
	return nil, workerFailure{Reason: reason, Message: message}
}

func renderTar(call *worker.Call, job workerJob) (manifest.Summary, error) {
	files, err := content.ReadTar(call.Data, manifest.IsManifest)
	if err != nil {
		return manifest.Summary{}, err
	}
	large := map[string]bool{}
	for _, file := range files {
		if len(file.Data) >= announcedBytes {
			large[file.Name] = true
		}
	}
	var mu sync.Mutex // files are parsed side by side
	set, err := content.Manifests(files, job.Namespace, func(name string) {
		if !large[name] {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		// A parent that is gone is noticed when the answer is written.
		_ = call.At(name)
	})
	if errors.Is(err, content.ErrEmpty) && job.AllowEmpty {
		set, err = &manifest.Set{Namespace: job.Namespace}, nil
	}
	if err != nil {
		return manifest.Summary{}, err
	}
	return set.WritePlain(call.Out)
}
