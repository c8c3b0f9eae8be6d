// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source/gittest"
)

// TestYA05HostileFilesHarmNobodyElse is the gate for hostile input: each ends as
// RenderFailed, in this same process, while others' renders go on.
func TestYA05HostileFilesHarmNobodyElse(t *testing.T) {
	w := newWorld(t, func(o *render.Options) { o.Slots = 4 })
	pid := os.Getpid()
	deep := strings.Repeat("[", 100_000)
	hostile := map[string]tree{
		"an alias bomb":                        caseTree(t, "YA-05", "v3"),
		"a document that contains itself":      caseTree(t, "YA-05", "v4"),
		"100,000 brackets":                     {"app/deep.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: " + deep},
		"100,000 brackets of JSON":             {"app/deep.json": `{"a": ` + deep},
		"10,000 levels of indentation":         {"app/deep.yaml": indented(3000)},
		"10,001 objects":                       {"app/many.yaml": strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", 10_001)},
		"an object of 9 MiB":                   {"app/big.yaml": gittest.ConfigMap("big", 9<<20)},
		"a file that is text but no end to it": {"app/x.yaml": strings.Repeat("? ", 100_000)},
		"30 MiB of commas":                     {"app/x.yaml": "[" + strings.Repeat("a,", 15<<20) + "]"},
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var group sync.WaitGroup
	for name, files := range hostile {
		group.Go(func() {
			start := time.Now()
			_, err := w.Render(t.Context(), job("hostile", files))
			var e *render.Error
			if !errors.As(err, &e) || e.Reason() != "RenderFailed" || len(err.Error()) > 4096 {
				t.Errorf("%s: %.300v", name, err)
			}
			t.Logf("%s: %s: %.200v", name, time.Since(start), err)
		})
	}
	for i := range 20 {
		group.Go(func() {
			_, err := w.Render(t.Context(), job(fmt.Sprintf("team-%d", i%3), tree{"app/cm.yaml": gittest.ConfigMap(fmt.Sprintf("cm-%d", i), 1000)}))
			if err != nil {
				t.Errorf("another render: %v", err)
			}
		})
	}
	group.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if os.Getpid() != pid {
		t.Error("another process")
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the hub grew by %d MiB", grown>>20)
	}
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i))
		b.WriteString("a:\n")
	}
	return b.String()
}

// One that takes more is ended, and then does not name the file.
func TestHostileFilesAreRefusedWithinASecondOfProcessorTime(t *testing.T) {
	render.LimitCPU(t, time.Second)
	w := newWorld(t)
	if _, err := w.render(t, tree{"app/a.yaml": gittest.ConfigMap("warm", 100)}); err != nil {
		t.Fatal(err)
	}
	for _, files := range []tree{caseTree(t, "YA-05", "v2"), caseTree(t, "YA-05", "v3"), caseTree(t, "YA-05", "v4"), {"app/deep.yaml": strings.Repeat("[", 100_000)}} {
		_, err := w.render(t, files)
		wantFailure(t, err, "RenderFailed", "app/")
	}
}
