// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// step reads a marker.
func (c *Case) step(doc *Document) (*Step, error) {
	s := &Step{Line: doc.Line, lines: map[string]int{}}
	for i := 0; i+1 < len(doc.root.Content); i += 2 {
		key, value := doc.root.Content[i], doc.root.Content[i+1]
		if meant := misspelt(key.Value); meant != "" {
			return nil, c.broken(key.Line, "a step has no key %q; %s?", key.Value, meant)
		}
		s.lines[key.Value] = key.Line
		if err := c.key(s, key.Value, value); err != nil {
			return nil, err
		}
	}
	switch s.Do {
	case doRender, doFiles, doLive, doHealth, doEvent, doCheck:
	case "":
		return nil, c.broken(s.Line, "step %q has no key do", s.Name)
	default:
		return nil, c.broken(s.Line, "step %s: do: %q is none of render, files, live, health, event, check", s.Name, s.Do)
	}
	if s.Name == "" {
		return nil, c.broken(s.Line, "a step without a name")
	}
	for key := range s.lines {
		if slices.Contains(stepKeys, key) && !slices.Contains(meantFor[s.Do], key) && !slices.Contains(meantFor[""], key) {
			s.Unknown = append(s.Unknown, key)
		}
	}
	slices.Sort(s.Unknown)
	// What expect means depends on the step, which may come after it.
	if s.Do == doHealth && len(s.Expect) == 1 {
		s.Verdict, s.Expect = s.Expect[0], nil
	}
	return s, nil
}

// stepKeys are all that key reads.
var stepKeys = []string{
	"step", "do", "release", "base", "path", "kind", "as", "how", "what", "note", "values", "expect",
	"tree", "treeBase64", "symlinks", "drop", "fill", "target", "replicas",
}

// meantFor are the keys that a kind of step uses, beside those that all do.
var meantFor = map[string][]string{
	"":       {"step", "do", "note"},
	doRender: {"release", "base", "path", "drop", "fill"},
	doFiles:  {"release", "base", "path", "kind", "drop", "values", "tree", "treeBase64", "symlinks"},
	doLive:   {"as", "how", "target", "replicas"},
	doHealth: {"expect"},
	doEvent:  {"what"},
	doCheck:  {"expect"},
}

// misspelt gives the key that was probably meant, "" when a key is right, or like
// none: a key for other readers of the file is left alone.
func misspelt(key string) string {
	if slices.Contains(stepKeys, key) {
		return ""
	}
	for _, known := range stepKeys {
		near := min(2, (len(known)-1)/2) // of two letters none: another word is too near
		if distance(strings.ToLower(key), strings.ToLower(known)) <= near {
			return known
		}
	}
	return ""
}

// distance is how many letters have to be put in, left out, changed, or swapped with
// their neighbour, to make one word of the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func (c *Case) key(s *Step, key string, value *yaml.Node) error {
	var err error
	switch key {
	case "step":
		s.Name, err = c.text(key, value)
	case "do":
		s.Do, err = c.text(key, value)
	case "release":
		s.Release, err = c.text(key, value)
	case "base":
		s.Base, err = c.text(key, value)
	case "path":
		s.Path, err = c.text(key, value)
	case "kind":
		s.Kind, err = c.text(key, value)
	case "as":
		s.As, err = c.text(key, value)
	case "how":
		s.How, err = c.text(key, value)
	case "what":
		s.What, err = c.text(key, value)
	case "note":
		s.Note, err = c.text(key, value)
	case "values":
		s.Values = encode(asWritten(value))
	case "expect":
		s.Expect = statements(value)
	case "tree":
		err = c.texts(key, value, &s.Tree, func(text string) (string, error) { return text, nil })
	case "treeBase64":
		err = c.texts(key, value, &s.Tree, func(text string) (string, error) {
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			return string(raw), err //nolint:wrapcheck // wrapped with the place
		})
	case "symlinks":
		err = c.texts(key, value, &s.Symlinks, func(text string) (string, error) { return text, nil })
	case "drop":
		s.Drop, err = c.drops(value)
	case "fill":
		s.Fill, err = c.fills(value)
	case "target":
		s.Target = targetOf(value)
	case "replicas":
		n, perr := strconv.ParseInt(value.Value, 10, 32)
		if perr != nil {
			return c.broken(value.Line, "replicas: %q is no number", value.Value)
		}
		s.Replicas = &n
	default:
		s.Unknown = append(s.Unknown, key)
	}
	return err
}

// targetOf reads a mapping, or a text like "Kind name" or "Kind/namespace/name".
func targetOf(value *yaml.Node) *Document {
	if value.Kind == yaml.ScalarNode {
		if parts := strings.FieldsFunc(value.Value, func(r rune) bool { return r == ' ' || r == '/' }); len(parts) == 2 || len(parts) == 3 {
			out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line}
			add := func(key, text string) {
				out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
			}
			add("kind", parts[0])
			if len(parts) == 3 {
				add("namespace", parts[1])
			}
			add("name", parts[len(parts)-1])
			value = out
		}
	}
	return &Document{root: value, Line: value.Line, Text: encode(value)}
}

// text takes any scalar as it is written: a step may be called 1 or on.
func (c *Case) text(key string, value *yaml.Node) (string, error) {
	if value.Kind != yaml.ScalarNode {
		return "", c.broken(value.Line, "%s has to be a text", key)
	}
	return value.Value, nil
}

// texts reads a mapping of paths to texts.
func (c *Case) texts(key string, value *yaml.Node, into *map[string]string, decode func(string) (string, error)) error {
	if value.Kind != yaml.MappingNode {
		return c.broken(value.Line, "%s has to map paths to texts", key)
	}
	if *into == nil {
		*into = map[string]string{}
	}
	for i := 0; i+1 < len(value.Content); i += 2 {
		path, content := value.Content[i], value.Content[i+1]
		if content.Kind != yaml.ScalarNode {
			return c.broken(content.Line, "%s: %s has to be a text", key, path.Value)
		}
		text, err := decode(content.Value)
		if err != nil {
			return c.broken(content.Line, "%s: %s: %w", key, path.Value, err)
		}
		(*into)[path.Value] = text
	}
	return nil
}

// statements takes a list or one text. What YAML reads as something else, such as a
// statement with a colon in it, is shown as it is written.
func statements(value *yaml.Node) []string {
	if value.Kind != yaml.SequenceNode {
		return []string{statement(value)}
	}
	var out []string
	for _, item := range value.Content {
		out = append(out, statement(item))
	}
	return out
}

func statement(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		return node.Value
	}
	return strings.TrimSpace(encode(node))
}

// list reads a list, or one item in place of a list.
func list(value *yaml.Node) []*yaml.Node {
	if value.Kind == yaml.SequenceNode {
		return value.Content
	}
	return []*yaml.Node{value}
}
