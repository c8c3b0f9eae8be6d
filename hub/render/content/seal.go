// SPDX-License-Identifier: Apache-2.0

package content

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
)

// seal points at every text of the objects that shows a text of a Secret: plain or in
// base64, whole or inside another, and in the forms of forms.go. Values of Secrets are
// sealed by themselves. given came in through Secrets that the job names; own are those
// of the render's Secret objects.
//
// Ordinary words are left alone in fields that name things (word.go), as the name of a
// database is in that of an image.
//
// What identifies an object, and annotations that the engine reads from the objects
// layer, stay as they are: a Secret's text that stands in a name is no secret any
// more. Keys and numbers cannot be sealed; one of a Secret is refused by its place.
func seal(set *manifest.Set, given []string, own owned) error {
	given, held := long(given), long(own.texts)
	if len(given)+len(held) == 0 {
		return nil
	}
	texts, err := newIndex(slices.Concat(given, held), minLineBytes)
	if err != nil {
		return err
	}
	inNames, err := newIndex(hard(slices.Concat(given, held)), minLineBytes)
	if err != nil {
		return err
	}
	numbers := make(map[string]bool, len(given))
	for _, text := range given {
		numbers[text] = true
	}
	keys, err := newIndex(inKeys(hard(given)), minKeyBytes)
	if err != nil {
		return err
	}
	ownKeys, err := newIndex(inKeys(hard(held)), minKeyBytes)
	if err != nil {
		return err
	}
	var faults manifest.Errors
	for i := range set.Objects {
		object := &set.Objects[i]
		s := &sealer{texts: texts, inNames: inNames, numbers: numbers, keys: keys}
		if isSecret(object) {
			s.ownKeys, s.authored = ownKeys, own.keys
		}
		s.walk(object.Content, nil)
		object.Sealed = append(object.Sealed, s.found...)
		for _, list := range []struct {
			paths []string
			err   error
		}{{s.atNumbers, ErrSecretNumber}, {s.atKeys, ErrSecretKey}} {
			slices.Sort(list.paths)
			for _, path := range slices.Compact(list.paths) {
				faults = append(faults, &manifest.Error{Place: object.Place, Object: object.String(), Path: path, Err: list.err})
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// long are the texts that are long enough to be looked for, without blanks around.
func long(secrets []string) []string {
	var texts []string
	for _, text := range secrets {
		if text = strings.TrimSpace(text); len(text) >= minSecretBytes {
			texts = append(texts, text)
		}
	}
	return texts
}

// inKeys are those of the texts, and of their lines, that no key may contain. Names
// that Kubernetes itself has given, as of labels, are no secrets.
func inKeys(texts []string) []string {
	var list []string
	for _, text := range texts {
		for _, part := range append(lines(text, minKeyBytes), text) {
			domain, _, named := strings.Cut(part, "/")
			if well := named && (strings.HasSuffix("."+domain, ".kubernetes.io") || strings.HasSuffix("."+domain, ".k8s.io")); len(part) >= minKeyBytes && !well {
				list = append(list, part)
			}
		}
	}
	return list
}

type sealer struct {
	texts   *index
	inNames *index // where a field names things
	numbers map[string]bool
	keys    *index
	// of a Secret object: values that no key of it may show, but those that were there
	// before the mutations; nil for others
	ownKeys  *index
	authored map[string]bool
	found    []string
	// places of numbers that are those of a Secret, and of maps with such keys
	atNumbers, atKeys []string
}

func (s *sealer) walk(value any, steps []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if s.barred(key) {
				s.atKeys = append(s.atKeys, strings.Join(steps, "."))
				continue // a path below would repeat the key
			}
			s.walk(child, append(steps[:len(steps):len(steps)], key))
		}
	case []any:
		for i, child := range v {
			s.walk(child, append(steps[:len(steps):len(steps)], strconv.Itoa(i)))
		}
	case string:
		texts := s.texts
		if namesThings(steps) {
			texts = s.inNames
		}
		if !identifies(steps) && texts.shows(v) {
			s.found = append(s.found, pointer(steps))
		}
	case json.Number:
		if s.numbers[v.String()] {
			s.atNumbers = append(s.atNumbers, strings.Join(steps, "."))
		}
	}
}

// barred reports a key that shows a text of a Secret.
func (s *sealer) barred(key string) bool {
	return s.keys.shows(key) || s.ownKeys != nil && !s.authored[key] && s.ownKeys.shows(key)
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
