// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// resolve gives the place that an entry of a field means, and counts it.
func (n *node) resolve(field, reference string) (string, error) {
	if n.references++; n.references > maxReferences {
		return "", at(n.file, field, fmt.Errorf("%w: more than %d references", ErrTooLarge, maxReferences))
	}
	name, err := resolve(n.folder, reference)
	if err != nil {
		return "", at(n.file, field, entry(reference, err))
	}
	return name, nil
}

// nothing says why nothing can be read at a place.
func (n *node) nothing(name string) error {
	if _, err := n.tree.Read(name); err != nil && !isMissing(err) {
		return err
	}
	return ErrMissing
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// read gives the file that an entry means. It has to lie in or below the folder of
// the kustomization.
func (n *node) read(field, reference string) (name string, data []byte, err error) {
	if name, err = n.resolve(field, reference); err != nil {
		return "", nil, err
	}
	if data, err = n.tree.Read(name); isMissing(err) {
		err = ErrMissing
	}
	if err == nil && !below(name, n.folder) {
		err = ErrRoot
	}
	if err != nil {
		return "", nil, at(n.file, field, entry(reference, err))
	}
	return name, data, nil
}

// bytes copies a file whose content is data.
func (n *node) bytes(field, reference string) error {
	name, data, err := n.read(field, reference)
	if err != nil {
		return err
	}
	if have, there := n.copied[name]; there && !bytes.Equal(have, data) {
		return at(name, "", errBothWays)
	}
	n.data[name], n.copied[name] = true, data
	return nil
}

// errBothWays: such a file would have to be rewritten for one use and left for the
// other.
var errBothWays = fmt.Errorf("%w: is taken as data and as objects, and has separators, marks or directives that kustomize does not know: write it plainly", ErrBuild)

// yaml copies a file that will be parsed.
func (n *node) yaml(field, reference string) error {
	name, data, err := n.read(field, reference)
	if err != nil {
		return err
	}
	if _, there := n.copied[name]; there && !n.data[name] {
		return nil
	}
	text, err := harmless(name, data)
	if err != nil {
		return err
	}
	if n.data[name] && !bytes.Equal(text, data) {
		return at(name, "", errBothWays)
	}
	n.copied[name] = text
	return nil
}

// inline checks a text that stands in a kustomization and will be parsed.
func (n *node) inline(field, text string) error {
	_, err := harmless(n.file+": "+field, []byte(text))
	return err
}

// harmless checks a text that the library will parse, which it does without limits,
// and gives it in a form in which the library finds the same documents as
// manifest.Parse: it loses what stands on a separator's line and all but the first of
// several JSON values, without a word. A plain text is given as it is.
func harmless(name string, data []byte) ([]byte, error) {
	documents, err := manifest.Documents(name, data)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 || plain(data) && (len(documents) == 1 || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))) {
		return data, nil
	}
	var text bytes.Buffer
	for _, document := range documents {
		text.WriteString("---\n")
		text.Write(bytes.TrimPrefix(document.Text, []byte("\n")))
		if !bytes.HasSuffix(document.Text, []byte("\n")) {
			text.WriteByte('\n')
		}
	}
	return text.Bytes(), nil
}

// plain reports a text that the library cuts as we do.
func plain(data []byte) bool {
	if bytes.Contains(data, []byte("\ufeff")) || bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return false
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, " \t\r\n")
		switch {
		case bytes.HasPrefix(line, []byte("---")) && len(line) > 3, bytes.HasPrefix(line, []byte("...")), bytes.HasPrefix(line, []byte("%")):
			return false
		}
	}
	return true
}

// finite refuses types of a file of crds that lead back to themselves: the library
// follows them until its stack is full.
func finite(file string, data []byte) error {
	var types map[string]struct {
		Schema struct {
			Properties map[string]struct {
				Ref string `json:"$ref"`
			} `json:"properties"`
		} `json:"schema"`
	}
	if err := yaml.Unmarshal(data, &types); err != nil || len(bytes.TrimSpace(data)) == 0 {
		return at(file, "", fmt.Errorf("%w: holds no definitions of types", ErrBuild))
	}
	paths := map[string]int{}
	open := map[string]bool{}
	var count func(name string) (int, error)
	count = func(name string) (int, error) {
		if open[name] {
			return 0, fmt.Errorf("%s: %w", shown(name), ErrCycle)
		}
		if n, done := paths[name]; done {
			return n, nil
		}
		open[name] = true
		defer delete(open, name)
		total := 1
		for _, property := range types[name].Schema.Properties {
			if property.Ref == "" {
				continue
			}
			n, err := count(property.Ref)
			if err != nil {
				return 0, err
			}
			if total += n; total > maxSchemaPaths {
				return 0, fmt.Errorf("%s: %w: more than %d paths through its types", shown(name), ErrTooLarge, maxSchemaPaths)
			}
		}
		paths[name] = total
		return total, nil
	}
	for name := range types {
		if _, err := count(name); err != nil {
			return at(file, "", err)
		}
	}
	return nil
}
