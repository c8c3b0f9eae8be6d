// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a step can do.
const (
	doRender = "render"
	doFiles  = "files"
	doLive   = "live"
	doHealth = "health"
	doEvent  = "event"
	doCheck  = "check"
)

// Case is one case file.
type Case struct {
	File string
	// ID, Class, Do and Right are from the comments at the top.
	ID, Class, Do, Right string
	Steps                []*Step
}

// Step is one marker and the documents that belong to it.
type Step struct {
	Name, Do string
	Line     int
	// Docs are those up to the next marker, as written.
	Docs []*Document

	// Of render and files.
	Release, Base, Path, Kind string
	Drop                      []drop
	Fill                      []fill
	Tree                      map[string]string
	Symlinks                  map[string]string
	Values                    string
	// Of live.
	As, How  string
	Target   *Document
	Replicas *int64
	// Of health.
	Verdict string
	// Of event.
	What string
	// Of check.
	Expect []string
	// Note is for people. Unknown are keys that the player does not know.
	Note    string
	Unknown []string

	// lines of the keys, for messages.
	lines map[string]int
}

// at is the line of a key, or of the step.
func (s *Step) at(key string) int {
	if line, ok := s.lines[key]; ok {
		return line
	}
	return s.Line
}

// Namespace that exists beforehand.
func (c *Case) Namespace() string { return "t-" + strings.ToLower(c.ID) }

// headers are the comments at the top that are read.
var headers = regexp.MustCompile(`(?m)^#[ \t]*(id|class|do|right):[ \t]*(.*?)[ \t]*$`)

// plainID can be part of names.
var plainID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]{0,30}[A-Za-z0-9])?$`)

// Read reads a case file.
func Read(path string) (*Case, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read case: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read case: %w", err)
	}
	return Parse(path, raw)
}

// Parse reads a case from bytes; file is for messages.
func Parse(file string, raw []byte) (*Case, error) {
	c := &Case{File: file}
	if len(raw) > maxFile {
		return nil, c.broken(1, "the file is larger than %d bytes", maxFile)
	}
	documents := split(string(raw))
	top := ""
	if len(documents) > 0 {
		top = documents[0].text
	}
	for _, m := range headers.FindAllStringSubmatch(top, -1) {
		switch m[1] {
		case "id":
			c.ID = m[2]
		case "class":
			c.Class = m[2]
		case "do":
			c.Do = m[2]
		default:
			c.Right = m[2]
		}
	}
	if !plainID.MatchString(c.ID) {
		return nil, c.broken(1, "the comments at the top need a line like %q", "# id: AB-01")
	}
	var current *Step
	names := map[string]bool{}
	for _, text := range documents {
		doc, err := c.document(text)
		if err != nil {
			return nil, err
		}
		switch {
		case doc.value("step") != nil:
			if current, err = c.step(doc); err != nil {
				return nil, err
			}
			if names[current.Name] {
				return nil, c.broken(current.Line, "a second step %q", current.Name)
			}
			names[current.Name] = true
			c.Steps = append(c.Steps, current)
		case doc.root == nil:
			// Comments alone.
		case current == nil:
			return nil, c.broken(doc.Line, "a document before the first one with the key step")
		default:
			current.Docs = append(current.Docs, doc)
		}
	}
	if len(c.Steps) == 0 {
		return nil, c.broken(1, "no document has the key step")
	}
	return c, c.verify()
}

// chunk is the text of one document and the line that it begins in.
type chunk struct {
	text string
	line int
}

// split cuts a stream at its separators without reading it: a line that begins with
// three dashes, or is three dots, cannot be inside of a value.
func split(stream string) []chunk {
	var out []chunk
	current, start, line := strings.Builder{}, 1, 0
	flush := func(next int) {
		out = append(out, chunk{current.String(), start})
		current.Reset()
		start = next
	}
	for text := range strings.Lines(strings.TrimPrefix(stream, "\uFEFF")) {
		line++
		bare := strings.TrimRight(text, " \t\r\n")
		switch {
		case bare == "---":
			flush(line + 1)
		case strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "---\t"):
			flush(line)
			current.WriteString("   " + text[3:])
		case bare == "...":
			flush(line + 1)
		default:
			current.WriteString(text)
		}
	}
	flush(line)
	return out
}

// document reads one document. Lines of errors and nodes are those of the file.
func (c *Case) document(in chunk) (*Document, error) {
	doc := &Document{Text: in.text, Line: in.line}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(strings.Repeat("\n", in.line-1)+in.text), &node); err != nil {
		line, message := in.line, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			if _, err := fmt.Sscan(m[1], &line); err != nil {
				line = in.line
			}
			message = m[2]
		}
		return nil, c.broken(line, "%s", message)
	}
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 && node.Content[0].Tag != "!!null" {
		doc.root, doc.Line = node.Content[0], node.Content[0].Line
	}
	return doc, nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// verify finds what can be seen without playing: bases that are not there, and steps
// that lack what they need.
func (c *Case) verify() error {
	before := map[string]*Step{}
	for _, s := range c.Steps {
		if err := c.verifyStep(s, before); err != nil {
			return err
		}
		before[s.Name] = s
	}
	return nil
}

func (c *Case) verifyStep(s *Step, before map[string]*Step) error {
	if s.Base != "" {
		base, ok := before[s.Base]
		if !ok || base.Do != s.Do {
			return c.broken(s.at("base"), "step %s: base %q is no earlier %s step", s.Name, s.Base, s.Do)
		}
	}
	if s.How != "" && !slices.Contains(ways, s.How) {
		return c.broken(s.at("how"), "step %s: how: %q is none of %s", s.Name, s.How, strings.Join(ways, ", "))
	}
	switch s.Do {
	case doHealth:
		if len(s.Docs) != 1 {
			return c.broken(s.Line, "step %s: health needs exactly one object, there are %d", s.Name, len(s.Docs))
		}
	case doLive:
		if err := c.verifyLive(s); err != nil {
			return err
		}
	case doFiles, doEvent, doCheck:
		if len(s.Docs) > 0 {
			return c.broken(s.Docs[0].Line, "step %s: a document after a %s step", s.Name, s.Do)
		}
	}
	if s.Do == doRender || s.Do == doFiles {
		// Bases, drops and fills are tried once without a control plane.
		_, _, err := c.files(s)
		return err
	}
	for _, doc := range s.Docs {
		if doc.Kind() == "" || doc.Name() == "" && s.Do != doHealth {
			return c.broken(doc.Line, "step %s: an object without kind or metadata.name", s.Name)
		}
	}
	return nil
}

// verifyLive finds writes that cannot be done: of nothing, or of a name alone.
func (c *Case) verifyLive(s *Step) error {
	how := s.How
	if how == "" {
		how = "create"
	}
	if len(s.Docs) == 0 && s.Target == nil {
		return c.broken(s.Line, "step %s: live needs an object or a target", s.Name)
	}
	if s.Target != nil && (s.Target.Kind() == "" || s.Target.Name() == "") {
		return c.broken(s.at("target"), "step %s: target has to be like {kind: Deployment, namespace: ns, name: n}", s.Name)
	}
	if len(s.Docs) == 0 && how != "scale" && how != "delete" {
		return c.broken(s.at("how"), "step %s: how: %s needs an object; a target is enough for scale and delete alone", s.Name, how)
	}
	if how != "scale" {
		return nil
	}
	for _, doc := range s.objects() {
		if s.replicas(doc) == nil {
			return c.broken(s.Line, "step %s: scale needs replicas, as a key of the step or of the target, or as spec.replicas of the object", s.Name)
		}
	}
	return nil
}

// replicas that a scale is to: the step's, or those that its object or its target has.
func (s *Step) replicas(doc *Document) *int64 {
	if s.Replicas != nil {
		return s.Replicas
	}
	for _, text := range []string{doc.text("spec", "replicas"), doc.text("replicas"), s.Target.text("replicas")} {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return &n
		}
	}
	return nil
}

// scaled is the object that a scale is of: a Scale, which an API server serves beneath
// other objects, stands for the target, or for the Deployment of its name.
func (s *Step) scaled(doc *Document) *Document {
	if doc.Kind() != "Scale" {
		return doc
	}
	if s.Target != nil {
		return s.Target
	}
	return targetOf(&yaml.Node{Kind: yaml.ScalarNode, Line: doc.Line, Value: strings.Join([]string{"Deployment", doc.Namespace(), doc.Name()}, "/")})
}

// driftShown are the words of a statement that holds only while drift is not repaired.
var driftShown = regexp.MustCompile(`(?i)\bInSync (?:is|turns|becomes) (?:False|not True)\b`)

// showsDrift gives a check that comes right after a write of somebody else and expects
// that the Release is not in sync; nil when there is none.
func (c *Case) showsDrift() *Step {
	for i, s := range c.Steps {
		if i > 0 && c.expectsDrift(c.Steps[i-1]) {
			return s
		}
	}
	return nil
}

// expectsDrift says whether the step after a live one is a check that expects drift.
func (c *Case) expectsDrift(s *Step) bool {
	i := slices.Index(c.Steps, s) + 1
	if i == 0 || i == len(c.Steps) || s.Do != doLive {
		return false
	}
	return c.Steps[i].Do == doCheck && slices.ContainsFunc(c.Steps[i].Expect, driftShown.MatchString)
}

// find gives an earlier step.
func (c *Case) find(name string) *Step {
	for _, s := range c.Steps {
		if s.Name == name {
			return s
		}
	}
	return nil
}
