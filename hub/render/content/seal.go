// SPDX-License-Identifier: Apache-2.0

package content

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// seal points at every text of the objects that shows a text of a Secret, plain or in
// base64, whole or inside another. Values of Secrets are sealed by themselves.
//
// What identifies an object, and annotations that the engine reads from the objects
// layer, stay as they are: a Secret's text that stands in a name is no secret any
// more. A number cannot be sealed; one of a Secret is refused by its place.
func seal(set *manifest.Set, secrets []string) error {
	texts := searched(secrets)
	if len(texts) == 0 {
		return nil
	}
	var faults manifest.Errors
	for i := range set.Objects {
		object := &set.Objects[i]
		s := &sealer{texts: texts}
		s.walk(object.Content, nil)
		object.Sealed = append(object.Sealed, s.found...)
		slices.Sort(s.numbers)
		for _, path := range s.numbers {
			faults = append(faults, &manifest.Error{Place: object.Place, Object: object.String(), Path: path, Err: ErrSecretNumber})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// searched are the texts that are long enough, the longest first, each once.
func searched(secrets []string) []string {
	var texts []string
	for _, text := range secrets {
		if text = strings.TrimSpace(text); len(text) >= minSecretBytes {
			texts = append(texts, text)
		}
	}
	slices.SortFunc(texts, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	texts = slices.Compact(texts)
	return texts[:min(len(texts), maxSecretTexts)]
}

type sealer struct {
	texts   []string
	found   []string
	numbers []string // places of numbers that are those of a Secret
}

func (s *sealer) walk(value any, steps []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			s.walk(child, append(steps[:len(steps):len(steps)], key))
		}
	case []any:
		for i, child := range v {
			s.walk(child, append(steps[:len(steps):len(steps)], strconv.Itoa(i)))
		}
	case string:
		if !identifies(steps) && s.shows(v) {
			s.found = append(s.found, pointer(steps))
		}
	case json.Number:
		if slices.Contains(s.texts, v.String()) {
			s.numbers = append(s.numbers, strings.Join(steps, "."))
		}
	}
}

// identifies reports fields that the layers' readers go by.
func identifies(steps []string) bool {
	switch len(steps) {
	case 1:
		return steps[0] == "apiVersion" || steps[0] == "kind"
	case 2:
		return steps[0] == "metadata" && (steps[1] == "name" || steps[1] == "namespace")
	case 3:
		return steps[0] == "metadata" && steps[1] == "annotations" && read(steps[2])
	}
	return false
}

// read reports annotations that the engine acts on.
func read(annotation string) bool {
	domain, _, _ := strings.Cut(annotation, "/")
	return domain == "convoy.kumodo.io" || domain == "argocd.argoproj.io" || domain == "helm.sh"
}

func (s *sealer) shows(text string) bool {
	if len(text) < minSecretBytes {
		return false
	}
	if s.contains(text) {
		return true
	}
	trimmed := strings.TrimSpace(text)
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if plain, err := encoding.DecodeString(trimmed); err == nil && s.contains(string(plain)) {
			return true
		}
	}
	return false
}

func (s *sealer) contains(text string) bool {
	return slices.ContainsFunc(s.texts, func(secret string) bool { return strings.Contains(text, secret) })
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is a JSON pointer (RFC 6901).
func pointer(steps []string) string {
	var b strings.Builder
	for _, step := range steps {
		b.WriteByte('/')
		b.WriteString(pointerEscaper.Replace(step))
	}
	return b.String()
}

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
