// SPDX-License-Identifier: Apache-2.0

package render

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"kumodo.io/convoy/hub/source/snapshot"
)

// Charts knows what a chart needs and does not have.
type Charts interface {
	// Charts gives the missing charts of the chart at a path, at the places where the
	// source should have them. The same ones each time for one revision of a source.
	Charts(ctx context.Context, path string) (Source, error)
}

// overlay is a source with the charts that it lacks.
type overlay struct {
	Source
	charts Source
}

// Kind says what stands at a path in one of the two.
func (o overlay) Kind(path string) (snapshot.Kind, error) {
	kind, err := o.Source.Kind(path)
	if err == nil && kind == snapshot.Absent {
		return o.charts.Kind(path)
	}
	return kind, err
}

// Part streams both, one after the other.
func (o overlay) Part(paths []string) (io.ReadCloser, error) {
	first, err := o.Source.Part(paths)
	if err != nil {
		return nil, err
	}
	second, err := o.charts.Part(paths)
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	reader, writer := io.Pipe()
	both := &joined{PipeReader: reader, parts: []io.ReadCloser{first, second}, done: make(chan struct{})}
	go func() { // Close waits for it
		defer close(both.done)
		out := tar.NewWriter(writer)
		err := errors.Join(copyTar(out, first), copyTar(out, second))
		if err == nil {
			err = out.Close()
		}
		writer.CloseWithError(err)
	}()
	return both, nil
}

func copyTar(out *tar.Writer, in io.Reader) error {
	for reader := tar.NewReader(in); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(out, reader); err != nil {
			return err
		}
	}
}

// joined ends its writer, and then what that read.
type joined struct {
	*io.PipeReader
	parts []io.ReadCloser
	done  chan struct{}
}

func (j *joined) Close() error {
	err := j.PipeReader.Close()
	<-j.done
	for _, part := range j.parts {
		err = errors.Join(err, part.Close())
	}
	return err
}
