// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"kumodo.io/convoy/pkg/tunnel"
)

// Blobs fetches the layers of renders. What comes is not trusted: digest and size
// are verified here.
type Blobs interface {
	// Open starts the download of one layer for the Release with that UID.
	Open(ctx context.Context, layer tunnel.Layer, sealed bool, uid string) (io.ReadCloser, error)
}

// State is what the edge keeps over a restart.
type State interface {
	Records
	Renders
}

// Records holds one Record per Release.
type Records interface {
	// LoadRecords calls yield for each record; an error of yield ends it.
	LoadRecords(ctx context.Context, yield func(*Record) error) error
	// SaveRecord writes a record whole, before it returns.
	SaveRecord(ctx context.Context, record *Record) error
	// DeleteRecord forgets a Release; one that is not there is no error.
	DeleteRecord(ctx context.Context, uid string) error
}

// Renders holds layers by digest.
type Renders interface {
	// PutRender stores a stream under a digest. When reading fails, nothing is
	// stored. A digest that is there already is left as it is, unread.
	PutRender(ctx context.Context, digest string, from io.Reader) error
	// OpenRender reads a layer; ErrNotStored when it is not there, or not whole.
	OpenRender(ctx context.Context, digest string) (io.ReadCloser, error)
	// RetainRenders deletes all that keep does not want.
	RetainRenders(ctx context.Context, keep func(digest string) bool) error
}
