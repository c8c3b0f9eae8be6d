// SPDX-License-Identifier: Apache-2.0

package content

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// secrets are all texts that came in through Secrets: those that the job names, and
// the texts inside of values and bodies.
func (r *renderer) secrets() []string {
	list := slices.Clone(r.job.Secrets)
	for _, values := range r.job.Values {
		if !values.Secret {
			continue
		}
		if values.TargetPath != "" {
			list = append(list, values.Text)
			continue
		}
		list = leaves(list, values.Text)
	}
	for _, mutation := range r.job.Mutations {
		if !mutation.Secret {
			continue
		}
		for _, body := range mutation.Bodies {
			list = leaves(list, body)
		}
	}
	return list
}

// leaves adds the texts inside of a YAML text; of one that is none, as a template may
// be, whatever stands between blanks and quotes.
func leaves(list []string, text string) []string {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return append(list, strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n\"',[]", c) })...)
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		case string:
			list = append(list, v)
		case float64:
			list = append(list, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	walk(value)
	return list
}

// owned is what the render's Secret objects hold.
type owned struct {
	texts []string
	keys  map[string]bool // what an author wrote, before the mutations
}

// own gives what the Secret objects hold, where mutations, or replacements and vars of
// a kustomization, can copy it: what an author wrote in clear elsewhere is the author's.
func (r *renderer) own() owned {
	o := owned{keys: map[string]bool{}}
	if len(r.job.Mutations) == 0 && !r.copies {
		return o
	}
	o.texts = slices.Clone(r.copied)
	for i := range r.set.Objects {
		if object := &r.set.Objects[i]; isSecret(object) {
			o.texts = held(o.texts, object)
			names(o.keys, object.Content)
		}
	}
	return o
}

// names adds the keys of all maps in a value.
func names(keys map[string]bool, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			keys[key] = true
			names(keys, child)
		}
	case []any:
		for _, child := range v {
			names(keys, child)
		}
	}
}

func isSecret(object *manifest.Object) bool { return object.Group == "" && object.Kind == "Secret" }

// held adds the values of a Secret object, those of data in base64 and decoded.
func held(list []string, object *manifest.Object) []string {
	for _, field := range []string{"data", "stringData"} {
		values, ok := object.Content[field].(map[string]any)
		if !ok {
			continue
		}
		for _, value := range values {
			text, ok := value.(string)
			if !ok {
				continue
			}
			list = append(list, text)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && field == "data" {
				list = append(list, string(plain))
			}
		}
	}
	return list
}
