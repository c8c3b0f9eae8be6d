// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// forms are the shapes in which templates put a text into another one: as it is, with
// escapes, and in base64.
func forms(text string) []string {
	return append(escaped(text), base64.StdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
}

// lines are those of a text with several, of a length that can be told from others.
// They are looked for by themselves too, since they may be indented anew.
func lines(text string, least int) []string {
	if !strings.ContainsAny(text, "\r\n") {
		return nil
	}
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) < least || strings.HasPrefix(line, "-----BEGIN ") || strings.HasPrefix(line, "-----END ") {
			continue // marks around a key say nothing of it
		}
		list = append(list, line)
	}
	return list
}

// escaped is a text with the escapes of JSON, of HTML in JSON, of Go, YAML, HTML and of
// both parts of a URL, each form once.
func escaped(text string) []string {
	list := []string{text}
	add := func(form string) {
		if !slices.Contains(list, form) {
			list = append(list, form)
		}
	}
	for _, forHTML := range []bool{false, true} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(forHTML)
		if err := encoder.Encode(text); err == nil { // a text always can be
			add(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(out.String()), `"`), `"`))
		}
	}
	add(unquoted(strconv.Quote(text)))
	add(unquoted(strconv.QuoteToASCII(text)))
	add(strings.ReplaceAll(text, "'", "''"))
	add(html.EscapeString(text))
	add(url.QueryEscape(text))
	add(url.PathEscape(text))
	return list
}

func unquoted(text string) string { return text[1 : len(text)-1] }

// index finds which of many texts stand in another, in one pass over it.
type index struct {
	// pairs has the first two bytes of all texts: most places are left by that.
	pairs [1 << 16]bool
	// heads has all texts by their first bytes, as many as the shortest has.
	heads map[string][]string
	seen  map[string]bool
}

// newIndex takes texts, and those of their lines that have so many bytes.
func newIndex(texts []string, leastLine int) (*index, error) {
	x := &index{heads: map[string][]string{}, seen: map[string]bool{}}
	for _, text := range texts {
		if x.seen[text] {
			continue
		}
		list := forms(text)
		for _, line := range lines(text, leastLine) {
			if !x.seen[line] {
				list = append(list, escaped(line)...)
			}
		}
		for _, form := range list {
			if err := x.add(form); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

func (x *index) add(form string) error {
	if x.seen[form] {
		return nil
	}
	if len(x.seen) == maxSecretTexts {
		return fmt.Errorf("%w: more than %d", ErrSecretTexts, maxSecretTexts)
	}
	x.seen[form] = true
	x.pairs[pair(form, 0)] = true
	head := form[:minSecretBytes]
	x.heads[head] = append(x.heads[head], form)
	return nil
}

func pair(text string, at int) int { return int(text[at])<<8 | int(text[at+1]) }

// contains reports that one of the texts stands in a text.
func (x *index) contains(text string) bool {
	for i := 0; i+minSecretBytes <= len(text); i++ {
		if !x.pairs[pair(text, i)] {
			continue
		}
		for _, form := range x.heads[text[i:i+minSecretBytes]] {
			if strings.HasPrefix(text[i:], form) {
				return true
			}
		}
	}
	return false
}

// shows reports that a text contains one of the texts, or that it is, or has a word in
// it that is, the base64 of something that does.
func (x *index) shows(text string) bool {
	if len(x.seen) == 0 || len(text) < minSecretBytes {
		return false
	}
	if x.contains(text) {
		return true
	}
	trimmed := strings.TrimSpace(text)
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if plain, err := encoding.DecodeString(trimmed); err == nil && x.contains(string(plain)) {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(text, noBase64) {
		if len(word) < minSecretBytes {
			continue
		}
		if plain, err := base64.RawStdEncoding.DecodeString(ofURLs.Replace(word)); err == nil && x.contains(string(plain)) {
			return true
		}
	}
	return false
}

// ofURLs turns the alphabet of base64 for URLs into the usual one.
var ofURLs = strings.NewReplacer("-", "+", "_", "/")

// noBase64 reports what ends a word of base64, padding among it.
func noBase64(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("+/-_", c)
}
