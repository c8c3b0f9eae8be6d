// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/source/gittest"
)

// endless are charts that would never end, or never fit.
func endless() map[string]tree {
	chart := func(template string) tree {
		return tree{"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.1.0}", "app/templates/cm.yaml": template}
	}
	return map[string]tree{
		"a template that includes itself": chart("{{ define \"loop\" }}{{ include \"loop\" . }}{{ end }}\n{{ include \"loop\" . }}\n"),
		"a text of 4 GB":                  chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {x: '{{ repeat 1000000 (repeat 4096 \"x\") }}'}\n"),
		"a range without end":             chart("{{ range $i, $e := until 100000 }}{{ range $j, $f := until 100000 }}{{ end }}{{ end }}"),
	}
}

func TestChartsThatNeverEndEndAloneWhileOthersAreRendered(t *testing.T) {
	w := newWorld(t, func(o *render.Options) { o.Slots = 4 })
	pid := os.Getpid()
	var group sync.WaitGroup
	for name, files := range endless() {
		group.Go(func() {
			_, err := w.Render(t.Context(), job("hostile", files))
			var e *render.Error
			if !errors.As(err, &e) || e.Reason() != "RenderFailed" || len(err.Error()) > 4096 {
				t.Errorf("%s: %.300v", name, err)
			}
			t.Logf("%s: %.200v", name, err)
		})
	}
	for i := range 50 {
		group.Go(func() {
			result, err := w.Render(t.Context(), job(fmt.Sprintf("team-%d", i%5), tree{
				"app/Chart.yaml":        "{apiVersion: v2, name: app, version: 0.1.0}",
				"app/templates/cm.yaml": gittest.ConfigMap(fmt.Sprintf("cm-%d", i), 1000),
			}))
			if err != nil || result.Count != 1 {
				t.Errorf("another render: %+v, %v", result, err)
			}
		})
	}
	group.Wait()
	if os.Getpid() != pid {
		t.Error("another process")
	}
}
