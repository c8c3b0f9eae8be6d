// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// tell gives the library's words on one line and of bounded size, if they hold nothing
// of what the files and texts say but names: of files, kinds, fields and objects. Its
// messages repeat values, patches and whole settings, and those may be of a Secret.
// folder is where the words came up.
func (w *walk) tell(folder, text string) string {
	text = strings.ReplaceAll(text, mount+"/", "")
	text = strings.ReplaceAll(text, "'"+mount+"'", "'.'")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		// A word that is cut would not be known again.
		text = strings.ToValidUTF8(text[:strings.LastIndexByte(text[:maxMessage], ' ')+1], "") + "..."
	}
	m := newMessage(text)
	m.names(folder)
	for name, data := range w.copied {
		m.names(name)
		if !w.data[name] {
			m.open(string(data))
		}
	}
	var suspects []suspect
	for _, name := range sortedNames(w.copied) {
		if shown := m.repeats(string(w.copied[name]), !w.data[name]); shown {
			suspects = append(suspects, suspect{places: m.where(name), piece: m.piece})
		}
	}
	places := guilty(suspects)
	if len(places) == 0 && !w.repeats(text) {
		return text
	}
	for _, word := range []string{"options.", "eplacement", "fieldPath", "fieldpath"} {
		if strings.Contains(text, word) {
			places = append(slices.Clone(w.replaced), places...)
			break
		}
	}
	return withheldAt(places)
}

// withheldAt stands for words that are not told.
func withheldAt(places []string) string {
	if len(places) == 0 {
		return withheld + "; look at its generators of Secrets, and at the patches and replacements that change or read them"
	}
	rest := ""
	if len(places) > maxPlaces {
		places, rest = places[:maxPlaces], " and others"
	}
	return withheld + "; look at the form, the names and the paths of what stands in " + strings.Join(places, ", ") + rest +
		", and at the patches and replacements that change or read it"
}

// message is a text that may be told, or not.
type message struct {
	text    string
	compact string
	// words of the text, true for those that may be told.
	words map[string]bool
	named map[string]bool // names as a whole
	// spots are the patches and the like of the text that was looked at last.
	spots []string
	// piece is the longest value or word that the text shares with the message.
	piece string
}

func newMessage(text string) *message {
	m := &message{text: text, compact: squeezed(text), words: map[string]bool{}, named: map[string]bool{}}
	// The text with its escapes, and without.
	for _, form := range []string{text, escapes.Replace(text)} {
		for _, word := range words(form) {
			m.words[word] = vocabulary[word]
		}
	}
	return m
}

var escapes = strings.NewReplacer(`\\`, " ", `\n`, " ", `\t`, " ", `\r`, " ", `\"`, " ", `\'`, " ")

// words are the runs of letters and digits that are long enough to tell something.
func words(text string) []string {
	list := strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return slices.DeleteFunc(list, func(word string) bool { return len(word) < minTellBytes })
}

// names lets a name be told.
func (m *message) names(name string) {
	if len(name) > maxNameBytes || strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./:~$[]*=", c)
	}) {
		return
	}
	m.named[name] = true
	for _, word := range words(name) {
		if _, there := m.words[word]; there {
			m.words[word] = true
		}
	}
}

// open lets the names in a YAML text be told: keys, and what identifies objects.
func (m *message) open(text string) {
	documents(text, func(root *yaml.Node) { m.openNode(root, nil) })
}

func (m *message) openNode(node *yaml.Node, steps []string) {
	if len(steps) > maxTellDepth {
		return
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if !isNothing(value) { // {text} is a map with a key, though nobody means it
				m.names(key.Value)
			}
			m.openNode(value, append(steps[:len(steps):len(steps)], key.Value))
		}
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, child := range node.Content {
			m.openNode(child, steps)
		}
	case yaml.ScalarNode:
		if isName(steps) {
			m.names(node.Value)
		}
		if nested(node.Value) && !underSecret(steps) {
			m.open(node.Value)
		}
	case yaml.AliasNode: // what it stands for is looked at where it is written
	}
}

// isNothing reports a null or an empty value.
func isNothing(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && (node.Tag == "!!null" || node.Value == "")
}

// isName reports the fields that identify objects, fields and files.
func isName(steps []string) bool {
	if len(steps) == 0 || underSecret(steps) {
		return false
	}
	last, parent := steps[len(steps)-1], ""
	if len(steps) > 1 {
		parent = steps[len(steps)-2]
	}
	switch last {
	case "apiVersion", "kind":
		return len(steps) == 1 || parent != "data"
	case "name", "namespace":
		return parent == "metadata" || len(steps) == 1 || selectors[parent] || selectors[steps[0]]
	case "group", "version":
		return selectors[parent] || selectors[steps[0]]
	case "namePrefix", "nameSuffix", "resources", "components", "bases":
		return len(steps) == 1
	case "fieldPath", "fieldPaths":
		return selectors[steps[0]] || parent == "source" || parent == "targets"
	}
	return false
}

// selectors are fields of kustomizations whose children say which objects are meant.
var selectors = map[string]bool{
	"replacements": true, "vars": true, "target": true, "select": true, "reject": true, "source": true, "objref": true,
	"configMapGenerator": true, "secretGenerator": true, "images": true,
}

// underSecret reports values of the fields that a Secret has.
func underSecret(steps []string) bool {
	return len(steps) > 0 && (steps[0] == "data" || steps[0] == "stringData")
}

// nested reports a text that may be YAML itself, as inline patches are.
func nested(text string) bool {
	trimmed := strings.TrimSpace(text)
	return strings.Contains(trimmed, "\n") || strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
}

// repeats reports that the message tells something of a text which is no name, and
// keeps where in it.
func (m *message) repeats(text string, isYAML bool) bool {
	m.spots, m.piece = nil, ""
	shown := false
	for _, word := range words(text) {
		if open, there := m.words[word]; there && !open {
			shown = true
			m.shared(word)
		}
	}
	if !isYAML {
		return m.shows(text, false) || slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			_, value, _ := strings.Cut(line, "=")
			return m.shows(line, false) || m.shows(value, false)
		}) || shown
	}
	documents(text, func(root *yaml.Node) {
		if m.repeatsNode(root, nil, "", isSecretNode(root)) {
			shown = true
		}
	})
	return shown
}

// repeatsNode looks at each value. spot is the patch or the like that it stands in.
func (m *message) repeatsNode(node *yaml.Node, steps []string, spot string, secret bool) bool {
	if len(steps) > maxTellDepth {
		return false
	}
	shown := false
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			shown = m.repeatsNode(value, append(steps[:len(steps):len(steps)], key.Value), spot, secret) || shown
			if isNothing(value) && m.shows(key.Value, false) {
				shown = true
			}
		}
	case yaml.DocumentNode:
		for _, child := range node.Content {
			shown = m.repeatsNode(child, steps, spot, secret) || shown
		}
	case yaml.SequenceNode:
		for i, child := range node.Content {
			inside := spot
			if len(steps) == 1 && numberedLists[steps[0]] {
				inside = numbered(steps[0], i, "")
			}
			shown = m.repeatsNode(child, steps, inside, secret) || shown
		}
	case yaml.ScalarNode:
		if shown = m.value(node, steps, secret); shown {
			m.shared(node.Value)
		}
		if shown && spot != "" && !slices.Contains(m.spots, spot) {
			m.spots = append(m.spots, spot)
		}
	case yaml.AliasNode: // as above
	}
	return shown
}

// value looks at one scalar.
func (m *message) value(node *yaml.Node, steps []string, secret bool) bool {
	if isName(steps) {
		return false
	}
	last := ""
	if len(steps) > 0 {
		last = steps[len(steps)-1]
	}
	// Names are told, but not where they are a Secret's value, too.
	strict := secret && underSecret(steps) || last == "value" || last == "literals" || last == "stringData"
	if nested(node.Value) {
		inner, any := false, false
		documents(node.Value, func(root *yaml.Node) {
			if root.Kind == yaml.DocumentNode && len(root.Content) == 1 && root.Content[0].Kind != yaml.ScalarNode {
				any = true
				inner = m.repeatsNode(root, nil, "", isSecretNode(root)) || inner
			}
		})
		if inner || any && !underSecret(steps) {
			return inner || m.word(node.Value)
		}
	}
	if m.shows(node.Value, !strict) || m.word(node.Value) {
		return true
	}
	if node.Tag == "!!float" || node.Tag == "!!int" {
		var number float64
		if err := node.Decode(&number); err == nil && len(node.Value) >= minTellBytes {
			for _, form := range []string{fmt.Sprint(number), strconv.FormatFloat(number, 'f', -1, 64)} {
				if m.shows(form, false) {
					return true
				}
			}
		}
	}
	if strict {
		for _, text := range append(strings.Split(node.Value, "\n"), node.Value) {
			_, value, pair := strings.Cut(text, "=")
			if m.shows(text, false) || pair && m.shows(strings.Trim(value, `"'`), false) {
				return true
			}
		}
	}
	if plain, err := base64.StdEncoding.DecodeString(squeezed(node.Value)); err == nil && secret && underSecret(steps) {
		return m.shows(string(plain), false) || m.word(string(plain))
	}
	return false
}

// word reports that the message has a word of a value that is not open.
func (m *message) word(value string) bool {
	return slices.ContainsFunc(words(value), func(word string) bool {
		open, there := m.words[word]
		return there && !open
	})
}

// shows reports a whole value in the message, in any of its forms.
func (m *message) shows(value string, names bool) bool {
	value = strings.Join(strings.Fields(value), " ")
	if len(value) < minTellBytes || names && m.named[value] {
		return false
	}
	quoted := strconv.Quote(value)
	forms := []string{value, quoted[1 : len(quoted)-1], strings.ReplaceAll(value, "'", "''")}
	if data, err := json.Marshal(value); err == nil {
		forms = append(forms, string(data[1:len(data)-1]))
	}
	for _, form := range forms {
		if stands(m.text, form) {
			return true
		}
	}
	if len(value) < minSecretBytes {
		return false
	}
	encoded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "=")
	return strings.Contains(m.compact, encoded) || len(value) > minSecretBytes*2 && strings.Contains(m.compact, squeezed(value))
}

// stands reports a text inside of another one. A short one has to stand for itself.
func stands(text, part string) bool {
	const short = 8
	letter := func(b byte) bool { return b >= 0x80 || unicode.IsLetter(rune(b)) || unicode.IsDigit(rune(b)) }
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(part)
		if len(part) >= short || (i == 0 || !letter(text[i-1]) || !letter(part[0])) && (end == len(text) || !letter(text[end]) || !letter(part[len(part)-1])) {
			return true
		}
		from = i + 1
	}
}

// where names the places in a file that the message repeats.
func (m *message) where(name string) []string {
	if len(m.spots) == 0 {
		return []string{name}
	}
	var list []string
	for _, spot := range m.spots {
		list = append(list, name+": "+spot)
	}
	return list
}

// numberedLists of a kustomization are named with the number of the entry.
var numberedLists = map[string]bool{
	"patches": true, "patchesStrategicMerge": true, "patchesJson6902": true, "replacements": true, "vars": true,
	"configMapGenerator": true, "secretGenerator": true, "generators": true, "transformers": true, "validators": true,
}

// documents calls back for each document of a text that can be read, and for no more
// of it from the first that cannot.
func documents(text string, each func(*yaml.Node)) {
	if len(text) > maxTellBytes {
		return
	}
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var root yaml.Node
		if err := decoder.Decode(&root); err != nil {
			return // the end, or what is no YAML: its words are looked at all the same
		}
		each(&root)
	}
}

// isSecretNode reports a document that is a Secret, or a list of operations or a patch
// without a kind, which may be for one.
func isSecretNode(root *yaml.Node) bool {
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return true
	}
	fields := root.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value == "kind" {
			return fields[i+1].Value == "Secret"
		}
	}
	return true
}

// squeezed is a text without blanks.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }

func sortedNames(copied map[string][]byte) []string {
	var list []string
	for name := range copied {
		list = append(list, path.Clean(name))
	}
	slices.Sort(list)
	return list
}
