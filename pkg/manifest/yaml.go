// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

var (
	errSyntax     = errors.New("not valid YAML")
	errSelf       = errors.New("a value that contains itself")
	errAliases    = fmt.Errorf("%w: aliases add too much", ErrTooLarge)
	errDepth      = fmt.Errorf("%w: nested deeper than %d", ErrTooLarge, MaxDepth)
	errMerge      = errors.New("a merge key (<<) needs a map, or a list of maps")
	errTag        = errors.New("has a tag that is not supported")
	errKey        = errors.New("a key must be text: quote it")
	errTrueKey    = fmt.Errorf("%w (without quotes this word is the boolean true)", errKey)
	errFalseKey   = fmt.Errorf("%w (without quotes this word is the boolean false)", errKey)
	errDuplicate  = errors.New("the key stands twice")
	errSeveral    = errors.New("holds several documents without a separator line")
	errTagged     = errors.New("does not fit its tag")
	errNoDocument = errors.New("not valid YAML: no value")
)

// yamlErrorLine finds the line in an error of the parser, which has it in its
// text only. The text stays the message; nothing is decided by it.
var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// fault is an error inside one document, before the document's place is known.
type fault struct {
	line int
	path string
	err  error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// parseNode reads one document with the YAML parser.
func parseNode(c chunk) (node *yaml.Node, err error) {
	defer func() {
		// The parser gives up by panics of its own for input that it never
		// expected; one document must not end the process.
		if r := recover(); r != nil {
			node, err = nil, &fault{line: c.line, err: errSyntax}
		}
	}()
	if values := countValues(c.text); values > maxValues {
		return nil, &fault{line: c.line, err: fmt.Errorf("%w: more than %d values in one document", ErrTooLarge, maxValues)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(c.text))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, yamlFault(c, err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, yamlFault(c, err)
		}
		return nil, &fault{line: c.line + second.Line - 1, err: errSeveral}
	}
	if len(document.Content) != 1 {
		return nil, &fault{line: c.line, err: errNoDocument}
	}
	return document.Content[0], nil
}

// countValues gives an upper bound of the values in a text.
func countValues(text []byte) int {
	n := 0
	for _, c := range []string{",", "\n", "[", "{", "- ", "? "} {
		n += bytes.Count(text, []byte(c))
	}
	return n
}

func yamlFault(c chunk, err error) error {
	text, line := err.Error(), c.line
	if found := yamlErrorLine.FindStringSubmatch(text); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil {
			line += n - 1
		} else {
			line += strayAlias(c.text)
		}
		text = text[len(found[0]):]
	}
	if unknownAnchor.MatchString(text) {
		text = "unknown anchor: quote a text that begins with *"
	}
	return &fault{line: line, err: fmt.Errorf("%w: %s", errSyntax, shown(text))}
}

// unknownAnchor is the one message of the parser that repeats a word of the input.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '.*' referenced$`)

// converter turns the nodes of one document into values.
type converter struct {
	base       int // line of the document's first line, minus 1
	open       map[*yaml.Node]bool
	inAlias    int
	aliasNodes int
	aliasBytes int
	path       []string
}

func (c *converter) fault(n *yaml.Node, err error) error {
	return &fault{line: c.base + n.Line, path: pathText(c.path), err: err}
}

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, c.fault(n, errDepth)
	}
	if c.inAlias > 0 {
		c.aliasNodes++
		c.aliasBytes += len(n.Value)
		if c.aliasNodes > maxAliasNodes || c.aliasBytes > maxAliasBytes {
			return nil, c.fault(n, errAliases)
		}
	}
	if n.Anchor != "" {
		c.open[n] = true
		defer delete(c.open, n)
	}
	switch n.Kind {
	case yaml.AliasNode:
		if c.open[n.Alias] {
			return nil, c.fault(n, errSelf)
		}
		c.inAlias++
		defer func() { c.inAlias-- }()
		return c.value(n.Alias, depth+1)
	case yaml.ScalarNode:
		return c.scalar(n)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.DocumentNode:
	}
	return nil, c.fault(n, errSyntax)
}

func (c *converter) sequence(n *yaml.Node, depth int) (any, error) {
	if n.ShortTag() != "!!seq" {
		return nil, c.fault(n, errTag)
	}
	list := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		c.path = append(c.path, "["+strconv.Itoa(i)+"]")
		value, err := c.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		c.path = c.path[:len(c.path)-1]
		list = append(list, value)
	}
	return list, nil
}

func (c *converter) mapping(n *yaml.Node, depth int) (any, error) {
	if n.ShortTag() != "!!map" {
		return nil, c.fault(n, errTag)
	}
	result := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, item)
			continue
		}
		name, err := c.key(key)
		if err != nil {
			return nil, err
		}
		c.path = append(c.path, name)
		if _, twice := result[name]; twice {
			return nil, c.fault(key, errDuplicate)
		}
		value, err := c.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		c.path = c.path[:len(c.path)-1]
		result[name] = value
	}
	for _, item := range merges {
		if err := c.merge(result, item, depth); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// merge adds the keys of the maps behind a merge key that are not there yet;
// earlier maps of a list win over later ones.
func (c *converter) merge(into map[string]any, n *yaml.Node, depth int) error {
	value, err := c.value(n, depth+1)
	if err != nil {
		return err
	}
	sources, ok := value.([]any)
	if !ok {
		sources = []any{value}
	}
	for _, source := range sources {
		from, ok := source.(map[string]any)
		if !ok {
			return c.fault(n, errMerge)
		}
		for key, value := range from {
			if _, there := into[key]; !there {
				into[key] = value
			}
		}
	}
	return nil
}

// key gives the text of a map's key. Whole numbers are taken as their decimal
// text, as kubectl does (port maps rely on it). Other words that are no text are
// refused: kubectl turns them into "true" or "false", never what was meant.
func (c *converter) key(n *yaml.Node) (string, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", c.fault(n, errKey)
	}
	c.path = append(c.path, shown(n.Value))
	value, err := c.scalar(n)
	if err != nil {
		return "", err
	}
	switch v := value.(type) {
	case string:
		c.path = c.path[:len(c.path)-1]
		return v, nil
	case json.Number:
		if !strings.ContainsAny(string(v), ".eE") {
			c.path = c.path[:len(c.path)-1]
			return string(v), nil
		}
	case bool:
		if v {
			return "", c.fault(n, errTrueKey)
		}
		return "", c.fault(n, errFalseKey)
	}
	return "", c.fault(n, errKey)
}

func (c *converter) scalar(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style != 0 {
			return n.Value, nil
		}
		value, err := plainScalar(n.Value)
		if err != nil {
			return nil, c.fault(n, err)
		}
		return value, nil
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil || !utf8.Valid(data) {
			return nil, c.fault(n, errTagged)
		}
		return string(data), nil
	case "!!int", "!!float", "!!bool", "!!null":
	default:
		return nil, c.fault(n, errTag)
	}
	value, err := plainScalar(n.Value)
	if err != nil {
		return nil, c.fault(n, err)
	}
	fits := false
	switch v := value.(type) {
	case nil:
		fits = n.ShortTag() == "!!null"
	case bool:
		fits = n.ShortTag() == "!!bool"
	case json.Number:
		fits = n.ShortTag() == "!!float" || n.ShortTag() == "!!int" && !strings.ContainsAny(string(v), ".eE")
	}
	if !fits {
		return nil, c.fault(n, errTagged)
	}
	return value, nil
}

// pathText joins the steps to a field: metadata.labels.app, spec.containers[0].image.
func pathText(steps []string) string {
	var b strings.Builder
	for _, step := range steps {
		if b.Len() > 4*maxShownText {
			b.WriteString("...")
			break
		}
		if b.Len() > 0 && !strings.HasPrefix(step, "[") {
			b.WriteByte('.')
		}
		b.WriteString(shown(step))
	}
	return b.String()
}

var aliasOrAnchor = regexp.MustCompile(`(?m)(?:^|[\s,\[{:])([*&])([^\s,\[\]{}]+)`)

// strayAlias counts the lines before the first alias without an anchor before it.
// The parser reports such an alias without a line, and hardly anything else so;
// a wrong guess costs a person a look around.
func strayAlias(text []byte) int {
	anchors := map[string]bool{}
	for _, found := range aliasOrAnchor.FindAllSubmatchIndex(text, -1) {
		name := string(text[found[4]:found[5]])
		if text[found[2]] == '&' {
			anchors[name] = true
		} else if !anchors[name] {
			return bytes.Count(text[:found[2]], []byte{'\n'})
		}
	}
	return 0
}
