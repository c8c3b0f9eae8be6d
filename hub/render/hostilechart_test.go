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

const hostileMeta = "{apiVersion: v2, name: app, version: 0.0.1}"

// hostileCharts are charts that never end, or never stop to grow, and a word that the
// error has to say.
var hostileCharts = []struct {
	name, template, values string
	says                   string
}{
	{"a template that includes itself", `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "", "nested reference name"},
	{"a template that is itself", `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, "", "maximum template depth"},
	{"two templates that include each other twice", `{{ define "a" }}{{ include "b" . }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "", ""},
	{"a value that is a template of itself", "{{ tpl .Values.a . }}", `a: "{{ tpl .Values.a . }}"`, "app: the worker"},
	{"a template of 4 GB", `{{ repeat 4294967296 "x" }}`, "", "app: the worker"},
	{"a text that doubles forty times", `{{ $s := "xx" }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}{{ $s }}`, "", "app: the worker"},
	{"an endless range", `{{ range 9223372036854775807 }}{{ end }}`, "", "app: the worker was ended"},
	{"an endless range that writes", `{{ range 9223372036854775807 }}x{{ end }}`, "", "app: the worker"},
	{"a list of ten thousand million", `{{ until 10000000000 }}`, "", ""},
	{"a map that doubles forty times", `{{ $d := dict }}{{ range until 40 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toYaml $d }}`, "", "app: the worker"},
	{"a map that holds itself, printed", `{{ $_ := set .Values "self" .Values }}{{ .Values }}`, "a: 1", "app: the worker"},
	{"a map that holds itself, copied", `{{ $_ := set .Values "self" .Values }}{{ deepCopy .Values }}`, "a: 1", "app: the worker"},
	{"an expression of a thousand thousand thousand", `{{ regexFind "((a{1000}){1000}){1000}" "a" }}`, "", "app/templates/a.yaml, line 1"},
	{"an alias bomb in values", "x", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]", "values.yaml"},
	{"values of a hundred thousand brackets", "x", "a: " + strings.Repeat("[", 100_000), "values.yaml"},
	{"a template of a hundred thousand parentheses", "{{ " + strings.Repeat("(", 100_000), "", ""},
	{"keys without end", `{{ range 9223372036854775807 }}{{ genPrivateKey "rsa" }}{{ end }}`, "", "app: the worker"},
	{"a document nested three thousand deep", `{{ range $i := until 3000 }}{{ repeat $i " " }}a:` + "\n" + `{{ end }}`, "", "app/templates/a.yaml"},
	{"a schema that refers to itself", "x", "", ""},
}

// TestHostileChartsHarmNobodyElse is the gate for charts: each ends with a clear error,
// in this same process, while others' renders go on.
func TestHostileChartsHarmNobodyElse(t *testing.T) {
	render.LimitCPU(t, time.Second)
	w := newWorld(t, func(o *render.Options) { o.Slots = 4 })
	pid := os.Getpid()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var group sync.WaitGroup
	for i, hostile := range hostileCharts {
		group.Go(func() {
			files := tree{"app/Chart.yaml": hostileMeta, "app/values.yaml": hostile.values, "app/templates/a.yaml": hostile.template}
			if strings.Contains(hostile.name, "schema") {
				files["app/values.schema.json"] = `{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`
			}
			start := time.Now()
			_, err := w.Render(t.Context(), job(fmt.Sprintf("hostile-%d", i%4), files))
			var e *render.Error
			if !errors.As(err, &e) || e.Reason() != "RenderFailed" || len(err.Error()) > 4096 || !strings.Contains(err.Error(), hostile.says) {
				t.Errorf("%s: %.300v", hostile.name, err)
			}
			t.Logf("%s: %s: %.200v", hostile.name, time.Since(start).Round(time.Millisecond), err)
		})
	}
	for i := range 50 {
		group.Go(func() {
			files := tree{"app/cm.yaml": gittest.ConfigMap(fmt.Sprintf("cm-%d", i), 1000)}
			if i%2 == 0 {
				files = tree{"app/Chart.yaml": hostileMeta, "app/templates/a.yaml": gittest.ConfigMap("{{ .Release.Name }}", 1000)}
			}
			if _, err := w.Render(t.Context(), job(fmt.Sprintf("team-%d", i%3), files)); err != nil {
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
