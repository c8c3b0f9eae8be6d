// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/base64"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
)

// replacementKind has replacements whose settings stand in a file.
const replacementKind = "ReplacementTransformer"

// cut is how a replacement takes a part of a value.
type cut struct {
	delimiter string
	index     int
}

// copying notes the replacements and vars that copy what a Secret holds.
func (n *node) copying(k *types.Kustomization) {
	for _, variable := range k.Vars { //nolint:staticcheck // kustomize still builds it, so it is followed
		n.copies = n.copies || isSecretSource(variable.ObjRef.Kind)
	}
	for _, replacement := range k.Replacements {
		source := replacement.Source
		if source == nil || !isSecretSource(source.Kind) {
			continue // one with a path is noted with its file
		}
		n.copies = true
		if source.Options != nil {
			n.cuts = append(n.cuts, cut{source.Options.Delimiter, source.Options.Index})
		}
	}
}

// copyingText notes those of a file of replacements, or of settings of a plugin.
func (n *node) copyingText(text string) {
	type source struct {
		Source *types.SourceSelector `yaml:"source"`
	}
	add := func(s *types.SourceSelector) {
		if s == nil || !isSecretSource(s.Kind) {
			return
		}
		n.copies = true
		if s.Options != nil {
			n.cuts = append(n.cuts, cut{s.Options.Delimiter, s.Options.Index})
		}
	}
	documents(text, func(root *yaml.Node) {
		var list []source
		var settings struct {
			source       `yaml:",inline"`
			Replacements []source `yaml:"replacements"`
		}
		if root.Decode(&list) != nil && root.Decode(&settings) != nil {
			n.copies = true // kustomize says what is wrong with it, or knows better
			return
		}
		for _, s := range append(append(list, settings.Replacements...), settings.source) {
			add(s.Source)
		}
	})
}

// isSecretSource reports a kind that is a Secret's, or none, which means any.
func isSecretSource(kind string) bool { return kind == "" || kind == "Secret" }

// secretTexts are what the Secrets of the files and those of the result hold, whole and
// as replacements cut them.
func (w *walk) secretTexts(built resmap.ResMap) ([]string, error) {
	list := append([]string{}, w.secrets...)
	add := func(text string, encoded bool) {
		list = append(list, text)
		if plain, err := base64.StdEncoding.DecodeString(squeezed(text)); encoded && err == nil {
			list = append(list, string(plain))
		}
	}
	for name, data := range w.copied {
		if !w.data[name] {
			secretsIn(string(data), add)
		}
	}
	for _, resource := range built.Resources() {
		if resource.GetKind() != "Secret" {
			continue
		}
		text, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		secretsIn(string(text), add)
	}
	for _, text := range list[:len(list):len(list)] {
		for _, cut := range w.cuts {
			if parts := strings.Split(text, cut.delimiter); cut.delimiter != "" && cut.index >= 0 && cut.index < len(parts) {
				add(parts[cut.index], false)
			}
		}
	}
	return list, nil
}

// secretsIn gives the values of the Secrets in a YAML text, and in texts of it that are
// YAML themselves, as patches are.
func secretsIn(text string, add func(text string, encoded bool)) {
	documents(text, func(root *yaml.Node) {
		if root.Kind != yaml.DocumentNode || len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
			return
		}
		kind, fields := "", root.Content[0].Content
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i].Value == "kind" {
				kind = fields[i+1].Value
			}
		}
		if kind != "Secret" {
			if kind == "" || kind == types.KustomizationKind || kind == types.ComponentKind || strings.HasSuffix(kind, "Transformer") {
				scalars(root, 0, func(text string) {
					if nested(text) {
						secretsIn(text, add)
					}
				})
			}
			return
		}
		for i := 0; i+1 < len(fields); i += 2 {
			if field := fields[i].Value; field == "data" || field == "stringData" {
				scalars(fields[i+1], 0, func(text string) { add(text, field == "data") })
			}
		}
	})
}

// scalars calls back for each scalar in a value that is no key.
func scalars(node *yaml.Node, depth int, each func(string)) {
	if depth > maxTellDepth {
		return
	}
	for i, child := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			scalars(child, depth+1, each)
		}
	}
	if node.Kind == yaml.ScalarNode {
		each(node.Value)
	}
}
