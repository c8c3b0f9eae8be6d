// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	bomUTF8    = []byte("\ufeff")
	bomUTF16LE = []byte{0xff, 0xfe}
	bomUTF16BE = []byte{0xfe, 0xff}

	errUTF32     = errors.New("is UTF-32; write it as UTF-8")
	errUTF16     = errors.New("is not valid UTF-16")
	errNotUTF8   = errors.New("has bytes that are not UTF-8")
	errControl   = errors.New("has a control character")
	errDirective = errors.New("has a directive that is not supported")
)

// chunk is the text of one document, its separator line included.
type chunk struct {
	text []byte
	line int // of its first line, from 1
}

// decodeText gives the file as UTF-8 without a byte order mark. A fault comes
// with its line.
func decodeText(data []byte) (text []byte, line int, err error) {
	switch {
	case bytes.HasPrefix(data, append(bomUTF16LE[:2:2], 0, 0)), bytes.HasPrefix(data, append([]byte{0, 0}, bomUTF16BE...)):
		return nil, 0, errUTF32
	case bytes.HasPrefix(data, bomUTF16LE):
		data, err = decodeUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, bomUTF16BE):
		data, err = decodeUTF16(data[2:], binary.BigEndian)
	default:
		data = bytes.TrimPrefix(data, bomUTF8)
	}
	if err != nil {
		return nil, 0, err
	}
	line = 1
	for i := 0; i < len(data); {
		c := data[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '\n':
				line++
			case c < 0x20 && c != '\t' && c != '\r', c == 0x7f:
				return nil, line, fmt.Errorf("%w (0x%02x)", errControl, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, line, errNotUTF8
		case r < 0xa0 && r != 0x85:
			return nil, line, fmt.Errorf("%w (U+%04X)", errControl, r)
		}
		i += size
	}
	return data, 0, nil
}

func decodeUTF16(data []byte, order binary.ByteOrder) ([]byte, error) {
	if len(data)%2 != 0 {
		return nil, errUTF16
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	text := make([]byte, 0, len(units)+len(units)/2)
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if utf16.IsSurrogate(r) {
			if i+1 == len(units) {
				return nil, errUTF16
			}
			if r = utf16.DecodeRune(r, rune(units[i+1])); r == utf8.RuneError {
				return nil, errUTF16
			}
			i++
		}
		text = utf8.AppendRune(text, r)
	}
	return text, nil
}

// split cuts a file into its documents at the lines that are markers in YAML
// wherever they stand ("---" and "..." at the first column). Documents are parsed
// one by one, so that an anchor of one is unknown in the next, memory is that of
// one document, and an error costs only its own. Directives are checked and left
// out. Chunks without content are dropped, but they count nowhere.
func split(text []byte) (chunks []chunk, line int, err error) {
	between := true // before the first content of a document: directives may stand here
	start, startLine, pos := 0, 1, 0
	cut := func(end int) {
		if hasContent(text[start:end]) {
			chunks = append(chunks, chunk{text: text[start:end], line: startLine})
		}
	}
	for line = 1; pos < len(text); line++ {
		end := len(text)
		if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		this := text[pos:end]
		switch {
		case marker(this, "---"):
			cut(pos)
			start, startLine, between = pos, line, false
			// A byte order mark after the separator carries no data.
			if rest := text[end:]; bytes.HasPrefix(rest, bomUTF8) {
				copy(text[pos+len(bomUTF8):], this)
				pos += len(bomUTF8)
				start = pos
				end += len(bomUTF8)
			}
		case marker(this, "..."):
			cut(pos)
			start, startLine, between = end, line+1, true
		case between && this[0] == '%':
			if !knownDirective(this) {
				return nil, line, errDirective
			}
			cut(pos)
			start, startLine = end, line+1
		case between && hasContent(this):
			between = false
		}
		pos = end
		if len(chunks) > MaxDocuments {
			return nil, line, fmt.Errorf("%w: more than %d documents", ErrTooLarge, MaxDocuments)
		}
	}
	cut(len(text))
	return chunks, 0, nil
}

// marker reports whether a line is a document marker: the three characters at its
// start, then white space or its end.
func marker(line []byte, what string) bool {
	return len(line) >= 3 && string(line[:3]) == what &&
		(len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r' || line[3] == '\n')
}

func knownDirective(line []byte) bool {
	fields := bytes.Fields(line)
	return len(fields) >= 2 && string(fields[0]) == "%YAML" &&
		(string(fields[1]) == "1.0" || string(fields[1]) == "1.1" || string(fields[1]) == "1.2") &&
		(len(fields) == 2 || fields[2][0] == '#')
}

// hasContent reports whether a piece of text has more than blanks, comments and
// a separator.
func hasContent(text []byte) bool {
	if marker(text, "---") {
		text = text[3:]
	}
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		line = bytes.TrimLeft(line, " \t\r")
		if len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}
