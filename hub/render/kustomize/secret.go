// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// withheld stands for what the library says where that repeats a value of a Secret.
const withheld = "its words are withheld, since they repeat a value of a secretGenerator"

// secretGenerator follows the files of a generator of a Secret, and checks its pairs
// before the library does, which repeats what is no pair. field is empty for one that
// is a file of settings.
func (n *node) secretGenerator(file, field string, generator *types.SecretArgs) error {
	check := func(list string, i, line int, good bool) error {
		if good {
			return nil
		}
		where := numbered(strings.TrimPrefix(field+"."+list, "."), i, "")
		if line > 0 {
			where += ", line " + strconv.Itoa(line)
		}
		return at(file, where, fmt.Errorf("secret %q: %w", shown(generator.Name), ErrPair))
	}
	for i, literal := range generator.LiteralSources {
		n.secret(literal)
		if err := check("literals", i, 0, strings.Index(literal, "=") > 0); err != nil {
			return err
		}
	}
	for _, source := range generator.FileSources {
		if data, ok := n.generated(filePart(source)); ok {
			n.secret(string(data))
		}
	}
	envs := generator.EnvSources
	if generator.EnvSource != "" {
		envs = append(envs[:len(envs):len(envs)], generator.EnvSource)
	}
	for i, source := range envs {
		data, ok := n.generated(source)
		if !ok {
			continue
		}
		for line, text := range strings.Split(string(data), "\n") {
			n.secret(text)
			if err := check("envs", i, line+1, utf8.ValidString(text)); err != nil {
				return err
			}
		}
	}
	return nil
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

// generatorOf reads the settings of a generator of a Secret.
func generatorOf(name string, settings map[string]any) (*types.SecretArgs, error) {
	var generator types.SecretArgs
	text, err := yaml.Marshal(settings)
	if err == nil {
		err = yaml.Unmarshal(text, &generator)
	}
	if err != nil { // which may repeat a value
		return nil, at(name, "", fmt.Errorf("%w: settings of a SecretGenerator that cannot be read", ErrBuild))
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
