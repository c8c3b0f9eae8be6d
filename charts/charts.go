// SPDX-License-Identifier: Apache-2.0

// Package charts holds the Helm charts of hub and agent and renders them without
// Helm: what manifests/ has and what `kubectl convoy join` prints is their output.
// It stands before the flow, where hub and agents are installed.
//
// The templates use few functions on purpose: text/template's own, quote and fail.
package charts

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// The charts.
const (
	Hub   = "convoy-hub"
	Agent = "convoy-agent"
)

//go:embed convoy-hub convoy-agent
var folders embed.FS

// A File is one rendered template.
type File struct {
	// Name without its folder, such as 10-rbac.yaml.
	Name string
	// Text is YAML with comments; documents are divided by lines of three dashes.
	Text []byte
}

// errFailed is what a template says with fail.
var errFailed = errors.New("refused by the chart")

// Render renders a chart with its default values, overridden by those given, as Helm
// would. Files that come out empty are left out. Values are not checked against the
// chart's schema.
func Render(chart string, overrides map[string]any) ([]File, error) {
	values, err := defaults(chart)
	if err != nil {
		return nil, err
	}
	merge(values, overrides)
	names, err := fs.Glob(folders, path.Join(chart, "templates", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", chart, err)
	}
	var files []File
	for _, name := range names {
		text, err := render(name, map[string]any{"Values": values})
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", chart, err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			files = append(files, File{Name: path.Base(name), Text: text})
		}
	}
	return files, nil
}

// Join puts files into one stream of documents.
func Join(files []File) []byte {
	var out bytes.Buffer
	for i, file := range files {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(file.Text)
	}
	return out.Bytes()
}

// defaults reads the values of a chart.
func defaults(chart string) (map[string]any, error) {
	raw, err := folders.ReadFile(path.Join(chart, "values.yaml"))
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", chart, err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		return nil, fmt.Errorf("chart %s: values: %w", chart, err)
	}
	return values, nil
}

// merge puts the values of from over those of into, map by map.
func merge(into, from map[string]any) {
	for key, value := range from {
		below, isMap := value.(map[string]any)
		have, hasMap := into[key].(map[string]any)
		if isMap && hasMap {
			have = maps.Clone(have)
			merge(have, below)
			into[key] = have
			continue
		}
		into[key] = value
	}
}

func render(name string, data any) ([]byte, error) {
	raw, err := folders.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read a template: %w", err)
	}
	parsed, err := template.New(path.Base(name)).Option("missingkey=error").Funcs(template.FuncMap{
		"quote": quote,
		"fail":  func(why string) (string, error) { return "", fmt.Errorf("%w: %s", errFailed, why) },
	}).Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("parse a template: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("render a template: %w", err)
	}
	text := strings.TrimSpace(out.String())
	if text == "" {
		return nil, nil
	}
	return []byte(text + "\n"), nil
}

// quote writes a value as a JSON string, which YAML reads as the same string.
func quote(value any) (string, error) {
	quoted, err := json.Marshal(fmt.Sprint(value))
	if err != nil {
		return "", fmt.Errorf("quote: %w", err)
	}
	return string(quoted), nil
}
