// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind of a frame. A frame is its kind (1 byte), the length of its payload (4
// bytes, big endian) and the payload.
//
// A job goes to the worker as Job (JSON), any number of Data, End. The answer is
// any number of At and Data, then Done or Failed (JSON both).
type Kind byte

// Kinds of frames.
const (
	Job    Kind = 'J'
	Data   Kind = 'D'
	End    Kind = 'Z'
	At     Kind = 'A' // what the worker is about to do, for the error if it dies of it
	Done   Kind = 'O'
	Failed Kind = 'E'
)

// WriteFrame writes one frame.
func WriteFrame(w io.Writer, kind Kind, payload []byte) error {
	if len(payload) > MaxFrameBytes {
		return fmt.Errorf("%w: %d bytes", ErrFrame, len(payload))
	}
	head := [5]byte{byte(kind)}
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// WriteJSON writes one frame with a value as JSON.
func WriteJSON(w io.Writer, kind Kind, value any) error {
	payload, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return WriteFrame(w, kind, payload)
}

// FrameReader reads frames.
type FrameReader struct {
	in     *bufio.Reader
	buffer []byte
}

// NewFrameReader reads frames from r.
func NewFrameReader(r io.Reader) *FrameReader {
	return &FrameReader{in: bufio.NewReaderSize(r, 64<<10)}
}

// Next gives a frame; its payload is valid until the next call. io.EOF only
// between frames.
func (f *FrameReader) Next() (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: cut", ErrFrame)
		}
		return 0, nil, err
	}
	size := int(binary.BigEndian.Uint32(head[1:]))
	if size > MaxFrameBytes {
		return 0, nil, fmt.Errorf("%w: %d bytes", ErrFrame, size)
	}
	if cap(f.buffer) < size {
		f.buffer = make([]byte, size)
	}
	payload := f.buffer[:size]
	if _, err := io.ReadFull(f.in, payload); err != nil {
		return 0, nil, fmt.Errorf("%w: cut", ErrFrame)
	}
	return Kind(head[0]), payload, nil
}

// DataWriter writes what it is given as Data frames. Flush at the end.
func DataWriter(w io.Writer) *bufio.Writer {
	return bufio.NewWriterSize(dataWriter{w}, 64<<10)
}

type dataWriter struct{ w io.Writer }

func (d dataWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), MaxFrameBytes)
		if err := WriteFrame(d.w, Data, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// DataReader gives the content of Data frames up to End, which is io.EOF.
func DataReader(frames *FrameReader) io.Reader { return &dataReader{frames: frames} }

type dataReader struct {
	frames *FrameReader
	rest   []byte
	ended  bool
}

func (d *dataReader) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.ended {
			return 0, io.EOF
		}
		kind, payload, err := d.frames.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case kind == End:
			d.ended = true
		case kind == Data:
			d.rest = payload
		default:
			return 0, fmt.Errorf("%w: kind %q among data", ErrFrame, kind)
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}
