// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
)

// impure are the functions whose answer differs from one render to the next: what is
// random, and what reads the clock. Those that only change a given time are among
// them, because they take the present one where they get none.
var impure = map[string]bool{
	"ago": true, "date": true, "date_in_zone": true, "dateInZone": true, "htmlDate": true, "htmlDateInZone": true, "now": true,
	"randAlpha": true, "randAlphaNum": true, "randAscii": true, "randBytes": true, "randInt": true, "randNumeric": true,
	"shuffle": true, "uuidv4": true,
	"bcrypt": true, "encryptAES": true, "genCA": true, "genCAWithKey": true, "genPrivateKey": true,
	"genSelfSignedCert": true, "genSelfSignedCertWithKey": true, "genSignedCert": true, "genSignedCertWithKey": true, "htpasswd": true,
}

// namesImpure finds any of them as a word.
func namesImpure(text string) bool {
	begin := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && inWord(text[i]) {
			continue
		}
		if impure[text[begin:i]] {
			return true
		}
		begin = i + 1
	}
	return false
}

func inWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// words are the places of a chart where something random may be asked for.
//
// Helm makes its functions by itself and lets nobody in. So templates are parsed for
// the names. A chart that names one may still not call it (a library of helpers is
// always there whole); to find that out it is rendered with those names replaced by
// the function that always fails. If that succeeds nothing random was called, and what
// came out is the render.
type words struct {
	edits []edit
	// asks: a template names lookup.
	asks bool
	// elsewhere: such a name stands in a text that may be given to tpl.
	elsewhere bool
}

// edit is one template, as it is and without what is random.
type edit struct {
	file          *chart.File
	name          string // as errors have it
	places        []place
	plain, barred []byte
}

// certain reports that it is not worth looking closer.
func (w *words) certain() bool { return w.elsewhere }

// possible reports that a template names something random.
func (w *words) possible() bool { return len(w.edits) > 0 }

// forbid replaces the names, allow puts them back.
func (w *words) forbid() {
	for _, e := range w.edits {
		e.file.Data = e.barred
	}
}

func (w *words) allow() {
	for _, e := range w.edits {
		e.file.Data = e.plain
	}
}

// findImpure looks through a chart. A name that a template puts together out of pieces
// is not found.
func findImpure(c *chart.Chart, values map[string]any) *words {
	found := &words{}
	usesTpl := false
	var spoken []string // texts in templates
	names := templateNames(c)
	for file := range templates(c) {
		text := string(file.Data)
		found.asks = found.asks || strings.Contains(text, "lookup")
		usesTpl = usesTpl || strings.Contains(text, "tpl")
		if !namesImpure(text) {
			continue // most templates: nothing to parse for
		}
		scan, err := scanTemplate(text)
		if err != nil {
			continue // the engine will say what is wrong
		}
		found.elsewhere = found.elsewhere || scan.lost
		spoken = append(spoken, scan.texts...)
		if len(scan.places) > 0 {
			found.edits = append(found.edits, edit{
				file: file, name: names[file], places: scan.places, plain: file.Data, barred: bar(file.Data, scan.places),
			})
		}
	}
	if !usesTpl {
		return found
	}
	for text := range others(c, values) {
		found.elsewhere = found.elsewhere || strings.Contains(text, "{{") && namesImpure(text)
	}
	for _, text := range spoken {
		found.elsewhere = found.elsewhere || namesImpure(text)
	}
	return found
}

// bar replaces names by the function that fails.
func bar(text []byte, places []place) []byte {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	var out bytes.Buffer
	last := 0
	for _, p := range slices.Compact(places) {
		out.Write(text[last:p.at])
		out.WriteString("fail")
		last = p.at + p.length
	}
	out.Write(text[last:])
	return out.Bytes()
}

// place is where a name stands in a template.
type place struct{ at, length int }

// scan is what is found in one template.
type scan struct {
	text   string
	places []place
	texts  []string
	// lost: a name stands where it was not found in the text.
	lost bool
}

// scanTemplate parses a template as the engine does, whatever functions it names.
func scanTemplate(text string) (*scan, error) {
	const name = "template"
	trees := map[string]*parse.Tree{}
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return nil, err
	}
	found := &scan{text: text}
	found.list(tree.Root)
	for _, one := range trees {
		if one != tree {
			found.list(one.Root)
		}
	}
	return found, nil
}

func (s *scan) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		s.node(node)
	}
}

func (s *scan) node(node parse.Node) {
	switch n := node.(type) {
	case *parse.ActionNode:
		s.pipe(n.Pipe)
	case *parse.TemplateNode:
		s.pipe(n.Pipe)
	case *parse.IfNode:
		s.branch(&n.BranchNode)
	case *parse.RangeNode:
		s.branch(&n.BranchNode)
	case *parse.WithNode:
		s.branch(&n.BranchNode)
	case *parse.PipeNode:
		s.pipe(n)
	case *parse.ChainNode:
		s.node(n.Node)
	case *parse.StringNode:
		s.texts = append(s.texts, n.Text)
	case *parse.IdentifierNode:
		s.identifier(n)
	}
}

func (s *scan) branch(b *parse.BranchNode) {
	s.pipe(b.Pipe)
	s.list(b.List)
	s.list(b.ElseList)
}

func (s *scan) pipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			s.node(arg)
		}
	}
}

func (s *scan) identifier(n *parse.IdentifierNode) {
	if !impure[n.Ident] {
		return
	}
	if at := int(n.Pos); at >= 0 && strings.HasPrefix(s.text[min(at, len(s.text)):], n.Ident) {
		s.places = append(s.places, place{at: at, length: len(n.Ident)})
		return
	}
	s.lost = true
}

// templates gives the templates of a chart and its subcharts, each once.
func templates(c *chart.Chart) iter.Seq[*chart.File] {
	return func(yield func(*chart.File) bool) {
		seen := map[*chart.File]bool{}
		for one := range charts(c) {
			for _, file := range one.Templates {
				if file == nil || seen[file] {
					continue
				}
				seen[file] = true
				if !yield(file) {
					return
				}
			}
		}
	}
}

// charts gives a chart and its subcharts.
func charts(c *chart.Chart) iter.Seq[*chart.Chart] {
	return func(yield func(*chart.Chart) bool) {
		list := []*chart.Chart{c}
		for len(list) > 0 {
			one := list[0]
			list = append(list[1:], one.Dependencies()...)
			if !yield(one) {
				return
			}
		}
	}
}

// texts gives all that may be a template.
func texts(c *chart.Chart, values map[string]any) iter.Seq[string] {
	return func(yield func(string) bool) {
		for file := range templates(c) {
			if !yield(string(file.Data)) {
				return
			}
		}
		for text := range others(c, values) {
			if !yield(text) {
				return
			}
		}
	}
}

// others gives what becomes a template when it is given to tpl: values and files.
func others(c *chart.Chart, values map[string]any) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !leaves(values, yield) {
			return
		}
		for one := range charts(c) {
			if !leaves(one.Values, yield) {
				return
			}
			for _, file := range one.Files {
				if file != nil && !yield(string(file.Data)) {
					return
				}
			}
		}
	}
}

// leaves gives the texts in a value, keys among them.
func leaves(value any, yield func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return yield(v)
	case map[string]any:
		for key, item := range v {
			if !yield(key) || !leaves(item, yield) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !leaves(item, yield) {
				return false
			}
		}
	}
	return true
}
