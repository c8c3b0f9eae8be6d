// SPDX-License-Identifier: Apache-2.0

package helmrepo

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"kumodo.io/convoy/hub/source/fault"
)

// entry is one version of a chart, as far as it is needed.
type entry struct {
	Name    string   `yaml:"name" json:"name"`
	Version string   `yaml:"version" json:"version"`
	URLs    []string `yaml:"urls" json:"urls"`
	Digest  string   `yaml:"digest" json:"digest"`
}

// scan reads an index and gives the entries of one chart until each says that it
// has enough. It reports whether there was a list of entries at all, and the error
// of an entry that could not be read; such an entry is passed over.
func scan(r io.Reader, chart string, each func(entry) (more bool)) (isIndex bool, skipped error, err error) {
	k := &kept{r: r}
	isIndex, skipped, err = scanForm(bufio.NewReaderSize(k, lineBytes), chart, each)
	if errors.Is(err, errFlow) {
		return k.scanFlow(chart, each)
	}
	return isIndex, skipped, err
}

// scanForm reads an index that is JSON, or YAML in block style; errFlow: it is neither,
// and no entry was given.
func scanForm(in *bufio.Reader, chart string, each func(entry) bool) (isIndex bool, skipped error, err error) {
	for {
		head, err := in.Peek(1)
		if errors.Is(err, io.EOF) {
			return false, nil, nil
		}
		if err != nil {
			return false, nil, err
		}
		switch head[0] {
		case ' ', '\t', '\r', '\n':
			if _, err := in.Discard(1); err != nil {
				return false, nil, err
			}
			continue
		case '{':
			given := false
			isIndex, err := scanJSON(in, chart, func(one entry) bool {
				given = true
				return each(one)
			})
			if errors.Is(err, errNoJSON) && !given {
				err = errFlow
			}
			return isIndex, nil, err
		}
		s := scanner{in: in, chart: chart, each: each}
		err = s.run()
		return s.isIndex, s.skipped, err
	}
}

// scanner goes through an index in block style, which is how every tool writes one.
// It tells keys by how far they are indented: a key of "entries" stands to the left
// of everything that belongs to the key before it.
type scanner struct {
	in    *bufio.Reader
	chart string
	each  func(entry) bool

	isIndex   bool
	inEntries bool
	keyAt     int // columns before the names of charts; -1: not seen
	inChart   bool
	itemAt    int // columns before the dashes of the chart's versions; -1: not seen
	item      bytes.Buffer
	tooLarge  bool
	skipped   error
	enough    bool
}

func (s *scanner) run() error {
	s.keyAt, s.itemAt = -1, -1
	for !s.enough {
		line, long, err := s.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			if err := s.take(line); err != nil {
				return err
			}
		}
		for long { // the rest of a line that is longer than the buffer
			if line, long, err = s.line(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			s.keep(line)
		}
		if errors.Is(err, io.EOF) {
			s.flush()
			return nil
		}
	}
	return nil
}

// line gives the next line with its end, or the first part of a long one.
func (s *scanner) line() (line []byte, long bool, err error) {
	line, err = s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return line, true, nil
	}
	return line, false, err
}

func (s *scanner) take(line []byte) error {
	text := bytes.TrimLeft(line, " ")
	indent := len(line) - len(text)
	text = bytes.TrimRight(text, "\r\n")
	switch {
	case len(bytes.TrimSpace(text)) == 0, text[0] == '#':
		s.keep(line)
		return nil
	case indent == 0 && text[0] != '-':
		s.leave()
		key, rest, ok := splitKey(text)
		s.inEntries = ok && key == "entries"
		if s.inEntries {
			s.isIndex, s.keyAt = true, -1
			if !empty(rest) {
				return errFlow
			}
		}
		return nil
	case !s.inEntries:
		return nil
	}
	if s.keyAt < 0 {
		s.keyAt = indent
	}
	isItem := text[0] == '-' && (len(text) == 1 || text[1] == ' ')
	switch {
	case indent < s.keyAt:
		return fault.Failf(fault.ClassInvalid, "the index is not indented as YAML is, at %s", fault.Clean(string(text)))
	case indent == s.keyAt && !isItem:
		return s.key(text)
	case !s.inChart:
		return nil
	case isItem && (s.itemAt < 0 || indent == s.itemAt):
		s.itemAt = indent
		s.flush()
	}
	s.keep(line)
	return nil
}

// key begins a chart.
func (s *scanner) key(text []byte) error {
	s.leave()
	name, rest, ok := splitKey(text)
	if !ok {
		return fault.Failf(fault.ClassInvalid, "the index is not YAML, at %s", fault.Clean(string(text)))
	}
	if s.inChart = name == s.chart && s.chart != ""; s.inChart && !empty(rest) {
		return errFlow
	}
	return nil
}

// leave ends the chart that is being read.
func (s *scanner) leave() {
	s.flush()
	s.inChart, s.itemAt = false, -1
}

// keep adds to the version that is being read.
func (s *scanner) keep(line []byte) {
	if !s.inChart || s.itemAt < 0 {
		return
	}
	if s.item.Len()+len(line) > maxEntryBytes {
		s.tooLarge = true
		return
	}
	s.item.Write(line)
}

// flush reads the version that was kept.
func (s *scanner) flush() {
	if s.item.Len() == 0 || s.enough {
		return
	}
	var found []entry
	err := yaml.Unmarshal(s.item.Bytes(), &found)
	if s.tooLarge {
		err = fault.Failf(fault.ClassTooLarge, "one version of %s has more than %d KiB in the index", fault.Clean(s.chart), maxEntryBytes>>10)
	}
	s.item.Reset()
	s.tooLarge = false
	if err != nil {
		s.skipped = err
		return
	}
	for _, one := range found {
		if !s.enough && !s.each(one) {
			s.enough = true
		}
	}
}

// splitKey reads "key: rest"; the key may be in quotes.
func splitKey(text []byte) (key, rest string, ok bool) {
	line := string(text)
	if line[0] == '"' || line[0] == '\'' {
		end := strings.IndexByte(line[1:], line[0])
		if end < 0 {
			return "", "", false
		}
		key, line = line[1:1+end], strings.TrimLeft(line[2+end:], " ")
		rest, ok = strings.CutPrefix(line, ":")
		return key, rest, ok
	}
	at := strings.IndexByte(line, ':')
	for at >= 0 && at+1 < len(line) && line[at+1] != ' ' { // a colon inside the key
		next := strings.IndexByte(line[at+1:], ':')
		if next < 0 {
			return "", "", false
		}
		at += 1 + next
	}
	if at < 0 {
		return "", "", false
	}
	return strings.TrimRight(line[:at], " "), line[at+1:], true
}

// empty reports that nothing stands behind a key but a comment, or an empty value.
func empty(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || rest[0] == '#' || rest == "{}" || rest == "[]" || rest == "null" || rest == "~"
}
