// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// withheld stands for what the library says where that repeats a value.
const withheld = "its words are withheld, since they repeat values of the source"

// secretGenerator follows the files of a generator of a Secret, and checks its pairs
// before the library does, which repeats what is no pair. field is empty for one that
// is a file of settings.
func (n *node) secretGenerator(file, field string, generator *types.SecretArgs) error {
	for i, literal := range generator.LiteralSources {
		n.secret(literal)
		if strings.Index(literal, "=") <= 0 {
			return at(file, numbered(strings.TrimPrefix(field+".literals", "."), i, ""), fmt.Errorf("secret %q: %w", shown(generator.Name), ErrPair))
		}
	}
	for _, source := range generator.FileSources {
		if data, ok := n.generated(filePart(source)); ok {
			n.secret(string(data))
		}
	}
	for _, source := range envsOf(generator.KvPairSources) {
		data, ok := n.generated(source)
		if !ok {
			continue
		}
		for text := range strings.Lines(string(data)) {
			n.secret(text)
		}
	}
	return n.envs(file, field, generator.KvPairSources)
}

// envs checks the lines of files of pairs. The library takes the value of a line without
// one out of its environment, of which there is none here: it would be empty, and what
// was meant for a value would stand in a key.
func (n *node) envs(file, field string, sources types.KvPairSources) error {
	for i, source := range envsOf(sources) {
		data, ok := n.generated(source)
		if !ok {
			continue
		}
		line := 0
		for text := range strings.Lines(string(data)) {
			line++
			if !isPair(text) {
				where := fmt.Sprintf("%s: %s, line %d", numbered(strings.TrimPrefix(field+".envs", "."), i, ""), shown(source), line)
				return at(file, where, ErrPair)
			}
		}
	}
	return nil
}

// envsOf are the files of pairs of a generator.
func envsOf(sources types.KvPairSources) []string {
	list := slices.Clone(sources.EnvSources)
	if sources.EnvSource != "" {
		list = append(list, sources.EnvSource)
	}
	return list
}

// envName is what a key in a file of pairs may be.
var envName = regexp.MustCompile(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)

// isPair reports a line of a file of pairs that is one, a remark or empty.
func isPair(line string) bool {
	if !utf8.ValidString(line) {
		return false
	}
	line = strings.TrimLeftFunc(strings.TrimPrefix(line, "\ufeff"), unicode.IsSpace)
	key, _, pair := strings.Cut(line, "=")
	return line == "" || line[0] == '#' || pair && envName.MatchString(key)
}

// secretFiles checks that the files of a generator of a Secret are there, before any
// other check repeats the name of one that is not: people write values in their place.
func (n *node) secretFiles(file, field string, generator *types.SecretArgs) error {
	check := func(list string, i int, reference string) error {
		place, err := resolve(n.folder, reference)
		if err == nil && !n.tree.IsFile(place) {
			if err = n.nothing(place); errors.Is(err, ErrMissing) {
				err = ErrSecretFile
			}
		}
		if err == nil {
			return nil
		}
		return at(file, numbered(strings.TrimPrefix(field+"."+list, "."), i, ""), fmt.Errorf("secret %q: %w", shown(generator.Name), err))
	}
	for i, source := range generator.FileSources {
		if err := check("files", i, filePart(source)); err != nil {
			return err
		}
	}
	for i, source := range generator.EnvSources {
		if err := check("envs", i, source); err != nil {
			return err
		}
	}
	if generator.EnvSource != "" {
		return check("env", 0, generator.EnvSource)
	}
	return nil
}

// generated is a file that was copied for a generator.
func (n *node) generated(reference string) ([]byte, bool) {
	data, ok := n.copied[strings.TrimPrefix(path.Join("/", n.folder, reference), "/")]
	return data, ok
}

// secretKind has generators of Secrets whose settings stand in a file.
const secretKind = "SecretGenerator"

// configMapKind has those of ConfigMaps.
const configMapKind = "ConfigMapGenerator"

// generatorOf reads the settings of a generator of a Secret, or of a ConfigMap.
func generatorOf(name string, settings map[string]any) (*types.SecretArgs, error) {
	var generator types.SecretArgs
	text, err := yaml.Marshal(settings)
	if err == nil {
		err = yaml.Unmarshal(text, &generator)
	}
	if err != nil { // which may repeat a value
		return nil, at(name, "", fmt.Errorf("%w: settings of a generator that cannot be read", ErrBuild))
	}
	if metadata, ok := settings["metadata"].(map[string]any); ok && generator.Name == "" {
		generator.Name, _ = metadata["name"].(string)
	}
	return &generator, nil
}

// secret notes a pair or a text that no message may repeat.
func (w *walk) secret(text string) {
	add := func(value string) {
		if value = strings.TrimSpace(value); len(value) >= minSecretBytes {
			w.secrets = append(w.secrets, value)
		}
	}
	add(text)
	if _, value, ok := strings.Cut(text, "="); ok {
		add(value)
		add(strings.Trim(strings.TrimSpace(value), `"'`))
	}
}

// repeats reports a message with a value of a Secret, as it is, quoted or in base64.
func (w *walk) repeats(message string) bool {
	for _, value := range w.secrets {
		quoted := strconv.Quote(value)
		if strings.Contains(message, value) || strings.Contains(message, quoted[1:len(quoted)-1]) ||
			strings.Contains(message, base64.StdEncoding.EncodeToString([]byte(value))) {
			return true
		}
	}
	return false
}
