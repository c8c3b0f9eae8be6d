// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unique"

	kjson "sigs.k8s.io/json"
)

// Entry is one object as stored. It is valid until the next call of Next.
type Entry struct {
	Identity
	Version string
	Wave    int32
	// Line counts from 1, the first object after the header.
	Line int
	// Digest of the line's bytes, "sha256:<hex>".
	Digest string
	// Raw is the line, masked, without its end.
	Raw []byte
	// Sealed maps JSON pointers to the values that belong there, nil if none.
	Sealed map[string]string
}

// objectMeta is what a Reader has to know of a line.
type objectMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

type sealedHeader struct {
	Format string `json:"format"`
	Salt   []byte `json:"salt"`
}

type sealedLine struct {
	Line   int               `json:"line"`
	Values map[string]string `json:"values"`
}

// Reader reads the two layers of a render side by side, one object at a time. It
// holds one line of each, whatever the size of the render. It does not check
// digests: that is for whoever fetched the bytes.
type Reader struct {
	objects *lineReader
	sealed  *lineReader
	header  Header
	line    int
	next    sealedLine // the next line that has sealed values; Line 0: no more
}

// NewReader reads the headers. sealed is nil when the render has no sealed layer.
func NewReader(objects, sealed io.Reader) (*Reader, error) {
	r := &Reader{objects: newLineReader(objects)}
	if err := r.objects.header(&r.header, FormatObjects, func() string { return r.header.Format }); err != nil {
		return nil, fmt.Errorf("objects layer: %w", err)
	}
	if r.header.Count < 0 || r.header.Count > MaxObjects {
		return nil, fmt.Errorf("%w: %d objects, at most %d", ErrTooLarge, r.header.Count, MaxObjects)
	}
	if sealed == nil {
		return r, nil
	}
	r.sealed = newLineReader(sealed)
	var header sealedHeader
	if err := r.sealed.header(&header, FormatSealed, func() string { return header.Format }); err != nil {
		return nil, fmt.Errorf("sealed layer: %w", err)
	}
	return r, r.advance()
}

// Header gives the first line of the objects layer.
func (r *Reader) Header() Header { return r.header }

// Next gives the next object, or io.EOF after the last one. Any other error names
// the line and ends the reading.
func (r *Reader) Next() (*Entry, error) {
	line, err := r.objects.next()
	if errors.Is(err, io.EOF) {
		if r.line != r.header.Count {
			return nil, fmt.Errorf("%w: %d objects, the header says %d", ErrFormat, r.line, r.header.Count)
		}
		if r.next.Line != 0 {
			return nil, fmt.Errorf("%w: sealed values for line %d, which does not exist", ErrFormat, r.next.Line)
		}
		return nil, io.EOF
	}
	r.line++
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	if r.line > r.header.Count {
		return nil, fmt.Errorf("line %d: %w: more objects than the header says", r.line, ErrFormat)
	}
	entry, err := readEntry(line, r.line)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	if r.next.Line == r.line {
		entry.Sealed = r.next.Values
		if err := r.advance(); err != nil {
			return nil, err
		}
	}
	return entry, nil
}

// advance reads the next line of the sealed layer.
func (r *Reader) advance() error {
	line, err := r.sealed.next()
	if errors.Is(err, io.EOF) {
		r.next = sealedLine{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("sealed layer: %w", err)
	}
	var next sealedLine
	if err := json.Unmarshal(line, &next); err != nil {
		// The text of a JSON error may repeat a part of its input.
		return fmt.Errorf("sealed layer: %w: a line is not valid JSON", ErrFormat)
	}
	if next.Line <= r.next.Line || next.Line <= r.line || len(next.Values) == 0 {
		return fmt.Errorf("sealed layer: %w: lines are not in order", ErrFormat)
	}
	r.next = next
	return nil
}

func readEntry(line []byte, number int) (*Entry, error) {
	var meta objectMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &meta); err != nil {
		return nil, errObjectJSON
	}
	if meta.APIVersion == "" || meta.Kind == "" || meta.Metadata.Name == "" {
		return nil, fmt.Errorf("%w: an object without apiVersion, kind or name", ErrFormat)
	}
	wave, err := Wave(meta.Metadata.Annotations)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(line)
	entry := &Entry{Line: number, Wave: wave, Raw: line, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	entry.Group, entry.Version = GroupVersion(once(meta.APIVersion))
	entry.Kind, entry.Namespace, entry.Name = once(meta.Kind), once(meta.Metadata.Namespace), meta.Metadata.Name
	return entry, nil
}

// once gives one copy of a text that many objects have, since an engine keeps who its
// objects are.
func once(text string) string { return unique.Make(text).Value() }

// Object decodes the line and puts the sealed values back. Numbers are json.Number.
func (e *Entry) Object() (map[string]any, error) {
	content, err := decodeObject(e.Raw)
	if err != nil {
		return nil, err
	}
	for pointer, value := range e.Sealed {
		err := replaceAt(content, pointer, func(marker string) (string, error) {
			if !strings.HasPrefix(marker, markerStart) || !strings.HasSuffix(marker, markerEnd) {
				return "", fmt.Errorf("%w: a sealed value for a field that has no marker", ErrFormat)
			}
			return value, nil
		})
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", e.Line, err)
		}
	}
	return content, nil
}

func decodeObject(line []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil || content == nil || decoder.More() {
		return nil, errObjectJSON
	}
	return content, nil
}

// lineReader reads lines up to MaxLineBytes, each ended by a line feed.
type lineReader struct {
	in     *bufio.Reader
	buffer []byte
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, readBuffer)}
}

// next gives a line without its end, valid until the next call. io.EOF only
// between lines; a torn last line is an error.
func (l *lineReader) next() ([]byte, error) {
	part, err := l.in.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], nil
	}
	if cap(l.buffer) > 1<<20 && len(l.buffer) < cap(l.buffer)/4 {
		l.buffer = nil // one huge object must not cost its memory for the rest of the render
	}
	l.buffer = append(l.buffer[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) && len(l.buffer) <= MaxLineBytes {
		part, err = l.in.ReadSlice('\n')
		l.buffer = append(l.buffer, part...)
	}
	switch {
	case len(l.buffer) > MaxLineBytes+1:
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, MaxLineBytes)
	case err == nil:
		return l.buffer[:len(l.buffer)-1], nil
	case errors.Is(err, io.EOF) && len(l.buffer) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: the last line is cut", ErrFormat)
	default:
		return nil, err
	}
}

// header reads the first line into value and checks its format.
func (l *lineReader) header(value any, want string, got func() string) error {
	line, err := l.next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: empty", ErrFormat)
	}
	if err != nil {
		return err
	}
	if len(line) > maxHeaderBytes {
		return fmt.Errorf("%w: header", ErrTooLarge)
	}
	if err := json.Unmarshal(line, value); err != nil || got() != want {
		return fmt.Errorf("%w: the header is not that of %s", ErrFormat, want)
	}
	return nil
}
