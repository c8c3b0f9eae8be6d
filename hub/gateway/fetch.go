// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"kumodo.io/convoy/pkg/tunnel"
)

// Fetch asks a Cluster's agent for a layer that it holds. The caller closes what
// it gets, and verifies it: an agent may send anything, of size bytes at most. It
// fails with ErrAway without a session, and with ErrNotHeld when the agent does
// not have the layer. It takes FetchTimeout at most, the reading included.
func (s *Sessions) Fetch(ctx context.Context, clusterUID, digest string) (blob io.ReadCloser, size int64, err error) {
	if !tunnel.ValidDigest(digest) {
		return nil, 0, fmt.Errorf("fetch %q: %w", digest, ErrNotHeld)
	}
	one, err := s.find(clusterUID)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/blobs/"+digest, http.NoBody)
	if err != nil {
		cancel()
		return nil, 0, fmt.Errorf("fetch %s: %w", digest, err)
	}
	resp, err := tunnel.NewClient(one.link).Do(r)
	if err != nil {
		cancel()
		return nil, 0, fmt.Errorf("fetch %s of %s: %w", digest, one.id, err)
	}
	fail := func(err error) (io.ReadCloser, int64, error) {
		err = errors.Join(fmt.Errorf("fetch %s of %s: %w", digest, one.id, err), resp.Body.Close())
		cancel()
		return nil, 0, err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return fail(ErrNotHeld)
	case resp.StatusCode != http.StatusOK:
		return fail(tunnel.ReadProblem(resp))
	case resp.ContentLength <= 0 || resp.ContentLength > tunnel.MaxBlob:
		return fail(fmt.Errorf("%w: a layer of %d bytes", tunnel.ErrTooLong, resp.ContentLength))
	}
	return &boundBody{ReadCloser: resp.Body, cancel: cancel}, resp.ContentLength, nil
}
