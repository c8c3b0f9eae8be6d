// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Formats of the two layers, and of the stream that a render worker gives.
const (
	FormatObjects = "convoy.render/v1"
	FormatSealed  = "convoy.sealed/v1"
)

// Marker of a sealed value in the objects layer: "<sealed:" HEX ">".
const (
	markerStart = "<sealed:"
	markerEnd   = ">"
)

// Summary is what Write and Seal wrote.
type Summary struct {
	// Count of objects and their Waves, ascending.
	Count int
	Waves []int32
	// SealedLines counts the objects with sealed values. When it is 0 nothing was
	// written to the sealed layer: there is none.
	SealedLines int
}

var (
	errSalt       = fmt.Errorf("%w: the salt must have %d bytes", ErrFormat, saltBytes)
	errObjectJSON = fmt.Errorf("%w: not valid JSON of an object", ErrFormat)
)

// Write arranges the set and writes both layers. Values of Secrets, and those that
// Object.Sealed points at, go to sealed; objects gets HMAC-SHA256(macKey, value) in
// their place, where value is the text in the object. salt is 32 random bytes, made
// once for a render, so that the sealed layer's digest gives no guess at its values.
func (s *Set) Write(objects, sealed io.Writer, macKey, salt []byte) (Summary, error) {
	if err := s.Arrange(); err != nil {
		return Summary{}, err
	}
	w, err := newSealer(objects, sealed, macKey, salt, s.header())
	if err != nil {
		return Summary{}, err
	}
	var line []byte
	for i := range s.Objects {
		object := &s.Objects[i]
		if pointers := object.sealedPointers(); len(pointers) > 0 {
			err = w.seal(object.Content, pointers)
		} else if line, err = Append(line[:0], object.Content); err == nil {
			err = w.line(line)
		}
		if err != nil {
			return Summary{}, &Error{Place: object.Place, Object: object.String(), Err: err}
		}
	}
	return w.finish()
}

// WritePlain arranges the set and writes the stream that Seal reads: the header,
// then for each object the JSON pointers to seal, a tab, and its canonical JSON
// with all values in clear. It never leaves the pipe between a render worker and
// the hub, which alone has the MAC key.
func (s *Set) WritePlain(w io.Writer) (Summary, error) {
	if err := s.Arrange(); err != nil {
		return Summary{}, err
	}
	header := s.header()
	out := bufio.NewWriterSize(w, 64<<10)
	if err := writeJSONLine(out, header); err != nil {
		return Summary{}, err
	}
	summary := Summary{Count: header.Count, Waves: header.Waves}
	var line []byte
	for i := range s.Objects {
		object := &s.Objects[i]
		line = line[:0]
		var err error
		if pointers := object.sealedPointers(); len(pointers) > 0 {
			summary.SealedLines++
			if line, err = appendPointers(line, object.Content, pointers); err != nil {
				return Summary{}, &Error{Place: object.Place, Object: object.String(), Err: err}
			}
		}
		line = append(line, '\t')
		if line, err = Append(line, object.Content); err == nil && len(line) > MaxLineBytes {
			err = fmt.Errorf("%w: an object of %d bytes, at most %d", ErrTooLarge, len(line), MaxLineBytes)
		}
		if err != nil {
			return Summary{}, &Error{Place: object.Place, Object: object.String(), Err: err}
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return Summary{}, err
		}
	}
	return summary, out.Flush()
}

// Seal reads a stream of WritePlain and writes both layers, line by line. The
// stream is not trusted: lines are parsed under limits, and every value of a
// Secret is sealed, whether the stream names it or not.
func Seal(plain io.Reader, objects, sealed io.Writer, macKey, salt []byte) (Summary, error) {
	lines := newLineReader(plain)
	var header Header
	if err := lines.header(&header, FormatObjects, func() string { return header.Format }); err != nil {
		return Summary{}, err
	}
	if header.Count < 0 || header.Count > MaxObjects {
		return Summary{}, fmt.Errorf("%w: %d objects, at most %d", ErrTooLarge, header.Count, MaxObjects)
	}
	w, err := newSealer(objects, sealed, macKey, salt, header)
	if err != nil {
		return Summary{}, err
	}
	for number := 1; ; number++ {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.plainLine(line)
		}
		if err != nil {
			return Summary{}, fmt.Errorf("line %d of the render: %w", number, err)
		}
	}
	return w.finish()
}

// sealer writes the two layers.
type sealer struct {
	objects *bufio.Writer
	sealed  *bufio.Writer
	mac     hash.Hash
	salt    []byte
	header  Header
	lines   int
	summary Summary
	buffer  []byte
}

func newSealer(objects, sealed io.Writer, macKey, salt []byte, header Header) (*sealer, error) {
	if len(salt) != saltBytes {
		return nil, errSalt
	}
	w := &sealer{
		objects: bufio.NewWriterSize(objects, 64<<10), sealed: bufio.NewWriterSize(sealed, 16<<10),
		mac: hmac.New(sha256.New, macKey), salt: salt, header: header,
		summary: Summary{Waves: header.Waves},
	}
	return w, writeJSONLine(w.objects, header)
}

// plainLine takes one line of a worker's stream.
func (w *sealer) plainLine(line []byte) error {
	head, body, ok := bytes.Cut(line, []byte{'\t'})
	if !ok {
		return ErrFormat
	}
	var meta objectMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &meta); err != nil {
		return errObjectJSON
	}
	group, _ := GroupVersion(meta.APIVersion)
	if len(head) == 0 && !isSecret(group, meta.Kind) {
		return w.line(body)
	}
	var pointers []string
	if len(head) > 0 {
		if err := json.Unmarshal(head, &pointers); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	content, err := decodeObject(body)
	if err != nil {
		return err
	}
	if isSecret(group, meta.Kind) {
		pointers = append(pointers, secretPointers(content)...)
	}
	return w.seal(content, pointers)
}

// seal writes an object with the values at pointers replaced by their MACs.
func (w *sealer) seal(content map[string]any, pointers []string) error {
	values := make(map[string]any, len(pointers))
	for _, pointer := range pointers {
		if _, done := values[pointer]; done {
			continue
		}
		if err := sealable(pointer); err != nil {
			return err
		}
		err := replaceAt(content, pointer, func(value string) (string, error) {
			values[pointer] = value
			w.mac.Reset()
			w.mac.Write([]byte(value))
			return markerStart + hex.EncodeToString(w.mac.Sum(nil)) + markerEnd, nil
		})
		if err != nil {
			return err
		}
	}
	var err error
	if w.buffer, err = Append(w.buffer[:0], content); err != nil {
		return err
	}
	if err := w.line(w.buffer); err != nil || len(values) == 0 {
		return err
	}
	if w.summary.SealedLines == 0 {
		if err := writeJSONLine(w.sealed, sealedHeader{Format: FormatSealed, Salt: w.salt}); err != nil {
			return err
		}
	}
	w.summary.SealedLines++
	line := append(w.buffer[:0], `{"line":`...)
	line = strconv.AppendInt(line, int64(w.lines), 10)
	line = append(line, `,"values":`...)
	if line, err = Append(line, values); err != nil {
		return err
	}
	w.buffer = append(line, '}')
	if len(w.buffer) > MaxLineBytes {
		return fmt.Errorf("%w: sealed values of %d bytes, at most %d", ErrTooLarge, len(w.buffer), MaxLineBytes)
	}
	return writeLine(w.sealed, w.buffer)
}

func (w *sealer) line(line []byte) error {
	if len(line) > MaxLineBytes {
		return fmt.Errorf("%w: an object of %d bytes, at most %d", ErrTooLarge, len(line), MaxLineBytes)
	}
	if w.lines++; w.lines > w.header.Count {
		return fmt.Errorf("%w: more objects than the header says", ErrFormat)
	}
	return writeLine(w.objects, line)
}

func (w *sealer) finish() (Summary, error) {
	if w.lines != w.header.Count {
		return Summary{}, fmt.Errorf("%w: %d objects, the header says %d", ErrFormat, w.lines, w.header.Count)
	}
	w.summary.Count = w.lines
	return w.summary, errors.Join(w.objects.Flush(), w.sealed.Flush())
}

// sealable refuses the fields that an object is found by: its line has to say in
// clear which object it is and when it is applied.
func sealable(pointer string) error {
	switch pointer {
	case "/apiVersion", "/kind", "/metadata/name", "/metadata/namespace",
		"/metadata/annotations/" + escapePointer(v1alpha1.AnnotationSyncWave),
		"/metadata/annotations/" + escapePointer(v1alpha1.AnnotationArgoSyncWave):
		return fmt.Errorf("%w: %s", ErrSealed, pointer)
	}
	return nil
}

// appendPointers adds the pointers as JSON, once it is sure that each leads to a text.
func appendPointers(line []byte, content map[string]any, pointers []string) ([]byte, error) {
	for _, pointer := range pointers {
		if err := sealable(pointer); err != nil {
			return nil, err
		}
		if err := replaceAt(content, pointer, func(value string) (string, error) { return value, nil }); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(pointers)
	if err != nil {
		return nil, err
	}
	return append(line, text...), nil
}

// secretPointers points at all values of a Secret that are text.
func secretPointers(content map[string]any) []string {
	var pointers []string
	for _, field := range []string{"data", "stringData"} {
		values, ok := content[field].(map[string]any)
		if !ok {
			continue
		}
		for _, key := range sortedKeys(values) {
			if _, text := values[key].(string); text {
				pointers = append(pointers, "/"+field+"/"+escapePointer(key))
			}
		}
	}
	return pointers
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")

	errPointer = fmt.Errorf("%w: a pointer leads to no text", ErrFormat)
)

func escapePointer(key string) string { return escaper.Replace(key) }

// replaceAt replaces the text that a JSON pointer leads to.
func replaceAt(content map[string]any, pointer string, replace func(string) (string, error)) error {
	steps := strings.Split(pointer, "/")
	if len(steps) < 2 || steps[0] != "" || len(steps) > MaxDepth {
		return errPointer
	}
	var at any = content
	for i, step := range steps[1:] {
		step = unescaper.Replace(step)
		last := i == len(steps)-2
		switch v := at.(type) {
		case map[string]any:
			if !last {
				at = v[step]
				continue
			}
			text, ok := v[step].(string)
			if !ok {
				return errPointer
			}
			text, err := replace(text)
			if err != nil {
				return err
			}
			v[step] = text
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(v) {
				return errPointer
			}
			if !last {
				at = v[index]
				continue
			}
			text, ok := v[index].(string)
			if !ok {
				return errPointer
			}
			if text, err = replace(text); err != nil {
				return err
			}
			v[index] = text
		default:
			return errPointer
		}
	}
	return nil
}

func writeLine(w io.Writer, line []byte) error {
	if _, err := w.Write(line); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

func writeJSONLine(w io.Writer, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeLine(w, line)
}
