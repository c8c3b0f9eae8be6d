// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"io"
	"time"

	"kumodo.io/convoy/hub/source/fault"
)

const (
	// maxRedirects that a request follows.
	maxRedirects = 5
	// maxDockerBytes of a docker configuration; maxDockerAuths of the registries in it.
	maxDockerBytes = 1 << 20
	maxDockerAuths = 1000
	// maxHeaderBytes of an answer.
	maxHeaderBytes = 256 << 10

	headerTimeout    = 30 * time.Second
	handshakeTimeout = 15 * time.Second
)

// Limited counts what is read and fails beyond the limit. What names it in the
// error.
type Limited struct {
	R     io.Reader
	Limit int64
	What  string
	// Sort, if there is one, makes an error of a connection fit for people.
	Sort func(error) error
	// N is how much was read.
	N int64
}

func (l *Limited) Read(p []byte) (int, error) {
	if room := l.Limit - l.N + 1; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := l.R.Read(p)
	if l.N += int64(n); l.N > l.Limit {
		return 0, fault.Failf(fault.ClassTooLarge, "%s has more than %d KiB, which is the limit", l.What, l.Limit>>10)
	}
	if err != nil && !errors.Is(err, io.EOF) && l.Sort != nil {
		err = l.Sort(err)
	}
	return n, err
}
