// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/helm"
)

// packed makes the archive of a chart out of entries.
func packed(t testing.TB, entries ...*tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, entry := range entries {
		text := entry.PAXRecords["CONVOY.text"]
		entry.PAXRecords = nil
		if entry.Typeflag == 0 {
			entry.Typeflag = tar.TypeReg
		}
		if entry.Size == 0 {
			entry.Size = int64(len(text))
		}
		if err := w.WriteHeader(entry); err != nil {
			t.Fatal(err)
		}
		if rest := entry.Size - int64(len(text)); rest > 0 {
			text += strings.Repeat("\x00", int(rest))
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func member(name, text string) *tar.Header {
	return &tar.Header{Name: name, PAXRecords: map[string]string{"CONVOY.text": text}}
}

// chartArchive is one with a name and one template.
func chartArchive(t testing.TB, name string, more ...*tar.Header) string {
	t.Helper()
	return packed(t, append([]*tar.Header{
		member(name+"/Chart.yaml", "{apiVersion: v2, name: "+name+", version: 1.2.3}"),
		member(name+"/values.yaml", "word: of "+name),
		member(name+"/values-prod.yaml", "word: of production"),
		member(name+"/templates/a.yaml", name+": {{ .Values.word }}\n"),
	}, more...)...)
}

func at(path string) func(*helm.Options) {
	return func(o *helm.Options) { o.Path = path }
}

func TestAChartIsReadOutOfAnArchive(t *testing.T) {
	tree := texts{"charts/app-1.2.3.tgz": chartArchive(t, "app"), "charts/beside.yaml": "word: from beside"}
	path := at("charts/app-1.2.3.tgz")
	if got := render(t, tree, path); got.all() != "app: of app\n" || got.Version != "1.2.3" {
		t.Errorf("got %q %+v", got.all(), got.Result)
	}
	if got := render(t, tree, path, withFiles("values-prod.yaml")).all(); got != "app: of production\n" {
		t.Errorf("a values file of the archive: %q", got)
	}
	if got := render(t, tree, path, withFiles("../beside.yaml")).all(); got != "app: from beside\n" {
		t.Errorf("a values file beside the archive: %q", got)
	}
}

func TestSubchartsAreReadOutOfArchivesAtAnyDepth(t *testing.T) {
	leaf := chartArchive(t, "leaf")
	middle := chartArchive(t, "middle", member("middle/charts/leaf-1.2.3.tgz", leaf))
	tree := chart("app: {{ .Values.word }}", "word: x\nmiddle: {leaf: {word: deep}}")
	tree["app/charts/middle-1.2.3.tgz"] = middle
	tree["app/charts/_not.tgz"] = "ignored, as Helm ignores it"
	result := render(t, tree)
	var names []string
	for _, file := range result.Files {
		names = append(names, file.Name)
	}
	want := "app/charts/middle/charts/leaf/templates/a.yaml app/charts/middle/templates/a.yaml app/templates/a.yaml"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(result.all(), "leaf: deep") {
		t.Errorf("got %s", result.all())
	}
}

func TestArchivesThatAreRefused(t *testing.T) {
	nested := chartArchive(t, "c")
	for range helm.MaxNesting + 1 {
		nested = chartArchive(t, "c", member("c/charts/c.tgz", nested))
	}
	var many []*tar.Header
	for i := range helm.MaxChartFiles {
		many = append(many, member(fmt.Sprintf("app/f%d", i), ""))
	}
	var bomb []*tar.Header
	for i := range helm.MaxChartBytes/helm.MaxChartFileBytes + 1 {
		bomb = append(bomb, &tar.Header{Name: fmt.Sprintf("app/f%d", i), Size: helm.MaxChartFileBytes})
	}
	tests := []struct {
		name string
		data string
		want error
		text string
	}{
		{"no archive", "text", helm.ErrArchive, "gzip"},
		{"cut off", chartArchive(t, "app")[:100], helm.ErrArchive, "unexpected EOF"},
		{"empty", packed(t), helm.ErrArchive, "no files"},
		{"a symbolic link", chartArchive(t, "app", &tar.Header{Name: "app/templates/link.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), helm.ErrArchive, "app/templates/link.yaml"},
		{"a hard link", chartArchive(t, "app", &tar.Header{Name: "app/hard", Typeflag: tar.TypeLink, Linkname: "app/values.yaml"}), helm.ErrArchive, "app/hard"},
		{"a device", chartArchive(t, "app", &tar.Header{Name: "app/dev", Typeflag: tar.TypeChar}), helm.ErrArchive, "app/dev"},
		{"a path that leads out", chartArchive(t, "app", member("app/../../x", "")), helm.ErrArchive, "leads out"},
		{"a path of another system that leads out", chartArchive(t, "app", member(`app\..\..\x`, "")), helm.ErrArchive, "leads out"},
		{"an absolute path", chartArchive(t, "app", member("/app/x", "")), helm.ErrArchive, "leads out"},
		{"a drive", chartArchive(t, "app", member("app/c:/x", "")), helm.ErrArchive, "leads out"},
		{"files in no folder", packed(t, member("Chart.yaml", chartYAML)), helm.ErrArchive, "in a folder"},
		{"too large a file", chartArchive(t, "app", &tar.Header{Name: "app/big", Size: helm.MaxChartFileBytes + 1}), helm.ErrTooLarge, "app/big"},
		{"too many files", chartArchive(t, "app", many...), helm.ErrTooLarge, "more than 10000 files"},
		{"a bomb", chartArchive(t, "app", bomb...), helm.ErrTooLarge, "more than 100 MiB"},
		{"charts in charts in charts", nested, helm.ErrTooLarge, "nested more than 16 deep"},
		{"a subchart that is none", chartArchive(t, "app", member("app/charts/x.tgz", "text")), helm.ErrArchive, "charts/x.tgz"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(texts{"app.tgz": test.data}.tree(), at("app.tgz"))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || !strings.HasPrefix(err.Error(), "app.tgz") {
				t.Errorf("got %v", err)
			}
		})
	}
	// Subcharts have one account with their chart, in whatever they are packed.
	whole := texts{"app/Chart.yaml": chartYAML}
	for i := range 3 {
		whole[fmt.Sprintf("app/charts/c%d.tgz", i)] = chartArchive(t, fmt.Sprintf("c%d", i), bomb[:len(bomb)/2]...)
	}
	if _, err := try(whole.tree()); !errors.Is(err, helm.ErrTooLarge) {
		t.Errorf("three subcharts of half the size: %v", err)
	}
}

// FuzzLoad reads anything as an archive and as the files of a chart.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(chartArchive(f, "app")), chartYAML, "a: 1", "{{ .Values.a }}")
	f.Add([]byte("\x1f\x8b"), "{apiVersion: v2, name: app, version: 1.0.0, dependencies: [{name: x}]}", "{x: null, global: 1}", "{{ include \"x\" . }}")
	f.Fuzz(func(t *testing.T, archive []byte, meta, values, template string) {
		if len(archive) > 64<<10 || len(template) > 256 || strings.Contains(template, "repeat") || strings.Contains(template, "ntil") || strings.Contains(template, "seq") {
			return
		}
		list := []files.File{
			{Name: "app/Chart.yaml", Data: []byte(meta)}, {Name: "app/values.yaml", Data: []byte(values)},
			{Name: "app/templates/a.yaml", Data: []byte("{{- with .Values }}" + template + "{{ end }}")},
			{Name: "app/charts/x.tgz", Data: archive}, {Name: "x.tgz", Data: archive},
		}
		for _, path := range []string{"app", "x.tgz"} {
			result, err := try(files.New(list, nil), at(path))
			if err != nil && len(err.Error()) > 4096 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if err == nil && result.Chart == "" {
				t.Error("a chart without a name")
			}
		}
	})
}
