// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// functionKeys are the annotations by which a plugin's settings name the program
// that reads them.
var functionKeys = []string{"config.kubernetes.io/function", "config.k8s.io/function"}

// pathKeys are the fields of the built-in plugins that name files, in lower case:
// the library does not mind how they are written.
var pathKeys = map[string]bool{"path": true, "paths": true, "files": true, "envs": true, "env": true}

// textKeys are those that hold YAML in a text.
var textKeys = map[string]bool{"patch": true, "patches": true, "jsonop": true}

// plugin follows generators, transformers and validators: files, folders or texts
// with the settings of plugins.
func (n *node) plugin(k *types.Kustomization) error {
	for _, list := range []struct {
		name    string
		entries []string
	}{{"generators", k.Generators}, {"transformers", k.Transformers}, {"validators", k.Validators}} {
		for i, text := range list.entries {
			field := numbered(list.name, i, "")
			if oneLine(text) && !strings.HasPrefix(strings.TrimSpace(text), "{") {
				if err := n.resource(field, text, n); err != nil {
					return err
				}
				continue
			}
			if err := n.inline(field, text); err != nil {
				return err
			}
			if err := n.settingsOfPlugins(n.file+": "+field, []byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyLists keeps folders of plugins' settings to a list of files: if they could be
// patched, what they name would be known only when it is too late.
func (n *node) onlyLists(k *types.Kustomization) error {
	if n.user == nil {
		return nil
	}
	rest := *k
	rest.Resources, rest.TypeMeta, rest.MetaData = nil, types.TypeMeta{}, nil
	if !reflect.DeepEqual(rest, types.Kustomization{}) {
		return at(n.file, "", fmt.Errorf("%w: a folder of generators, transformers or validators may have resources only", ErrPlugin))
	}
	return nil
}

// settingsOfPlugins checks each document of a text with settings of plugins.
func (n *node) settingsOfPlugins(name string, text []byte) error {
	documents, err := manifest.Documents(name, text)
	if err != nil {
		return err
	}
	for _, document := range documents {
		var settings map[string]any
		if err := yaml.Unmarshal(document.Text, &settings); err != nil {
			return at(name, "", fmt.Errorf("%w: settings of a plugin must be a map", ErrBuild))
		}
		if err := n.setting(name, settings); err != nil {
			return err
		}
	}
	return nil
}

// setting checks the settings of one plugin.
func (n *node) setting(name string, settings map[string]any) error {
	kind, _ := settings["kind"].(string)
	version, _ := settings["apiVersion"].(string)
	for _, key := range functionKeys {
		if mentions(settings, key) {
			return at(name, "", fmt.Errorf("%s names a program: %w", key, ErrPlugin))
		}
	}
	switch {
	case kind == "HelmChartInflationGenerator":
		return at(name, "", ErrHelm)
	case version != konfig.BuiltinPluginApiVersion || strings.HasSuffix(kind, "List"):
		return at(name, "", fmt.Errorf("%q %q: %w", shown(version), shown(kind), ErrPlugin))
	}
	if kind == replacementKind {
		// Its replacements may stand in files of their own.
		n.copies = true
		if text, err := yaml.Marshal(settings); err == nil {
			n.copyingText(string(text))
		}
	}
	if kind == configMapKind {
		if err := n.paths(name, settings); err != nil {
			return err
		}
		generator, err := generatorOf(name, settings)
		if err != nil {
			return err
		}
		return n.envs(name, "", generator.KvPairSources)
	}
	if kind != secretKind {
		return n.paths(name, settings)
	}
	generator, err := generatorOf(name, settings)
	if err != nil {
		return err
	}
	if err := n.secretFiles(name, "", generator); err != nil {
		return err
	}
	if err := n.paths(name, settings); err != nil {
		return err
	}
	return n.secretGenerator(name, "", generator)
}

// mentions reports a key of the annotations.
func mentions(settings map[string]any, key string) bool {
	metadata, _ := settings["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, there := annotations[key]
	return there
}

// paths follows the files that settings name, wherever they do.
func (n *node) paths(name string, value any) error {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := n.paths(name, item); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			key = strings.ToLower(key)
			text, isText := item.(string)
			var err error
			switch {
			case pathKeys[key]:
				err = n.named(key, name, item)
			case textKeys[key] && isText:
				_, err = harmless(name+": "+key, []byte(text))
			default:
				err = n.paths(name, item)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// named follows one path, or a list of them. A path that is that of a field, as in
// the settings of replacements and labels, names no file: it is taken for one only
// if it is there.
func (n *node) named(key, name string, value any) error {
	switch v := value.(type) {
	case string:
		return n.maybe(key, name, v)
	case []any:
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				if err := n.paths(name, item); err != nil {
					return err
				}
				continue
			}
			if err := n.maybe(key, name, text); err != nil {
				return err
			}
		}
	default:
		return n.paths(name, value)
	}
	return nil
}

// maybe follows a text of a plugin's settings if it is a file of the source. What is
// not there is not copied, so that the library cannot find it either.
func (n *node) maybe(key, name, text string) error {
	reference := text
	if key == "files" {
		reference = filePart(text)
	}
	if oneLine(text) && remote(reference) {
		return at(name, key, entry(text, ErrRemote))
	}
	if !oneLine(text) {
		return n.inline(key, text)
	}
	place, err := resolve(n.folder, reference)
	if err != nil || !n.tree.IsFile(place) {
		return nil
	}
	if key == "path" || key == "paths" {
		if err := n.yaml(key, reference); err != nil {
			return err
		}
		n.copyingText(string(n.copied[place]))
		return nil
	}
	return n.bytes(key, reference)
}
