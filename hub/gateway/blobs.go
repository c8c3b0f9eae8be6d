// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"kumodo.io/convoy/pkg/tunnel"
)

// handleBlob sends a layer that an order of this Cluster names now.
func (s *session) handleBlob(w http.ResponseWriter, r *http.Request) {
	g, digest := s.gw, r.PathValue("digest")
	layer, sealed, ok := g.opts.Orders.Allowed(s.id.UID, digest)
	if !ok {
		// The same answer whether it exists or not: knowing a digest is no right.
		g.metrics.refused("blob")
		g.log.Info("blob refused", "cluster", s.id.String(), "digest", digest)
		writeRefusal(w, refuse(tunnel.ReasonNotOrdered, "no order of this Cluster names that digest"))
		return
	}
	from, err := parseRange(r.Header.Get("Range"), layer.Size)
	if err != nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", layer.Size))
		tunnel.WriteProblem(w, http.StatusRequestedRangeNotSatisfiable, tunnel.ReasonBadRequest, "only one range, from an offset to the end", 0)
		return
	}
	blob, size, err := g.opts.Blobs.Open(r.Context(), layer.Digest, sealed)
	if err != nil {
		g.log.Error(err, "ordered blob could not be opened", "cluster", s.id.String(), "digest", digest)
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonInternal, "the hub cannot read that layer", RetryEnroll)
		return
	}
	if err := errors.Join(s.sendBlob(w, r, blob, from, size), blob.Close()); err != nil {
		// The answer ends early, which the agent sees.
		g.log.Error(err, "blob was not sent to its end", "cluster", s.id.String(), "digest", digest)
	}
}

func (s *session) sendBlob(w http.ResponseWriter, r *http.Request, blob io.Reader, from, size int64) error {
	g := s.gw
	out := tunnel.Stall{C: http.NewResponseController(w)}.Writer(w)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Accept-Ranges", "bytes")
	if from == 0 && acceptsZstd(r.Header.Get("Accept-Encoding")) {
		select {
		case g.encoders <- struct{}{}:
			defer func() { <-g.encoders }()
			w.Header().Set("Content-Encoding", "zstd")
			return s.sendPacked(out, blob)
		default: // too many at once: plain costs bytes, not memory
		}
	}
	code := http.StatusOK
	if from > 0 {
		// What is skipped is read all the same: the reader verifies from the start.
		if _, err := io.CopyN(io.Discard, blob, from); err != nil {
			tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonInternal, "the hub cannot read that layer", RetryEnroll)
			return fmt.Errorf("skip to %d: %w", from, err)
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, size-1, size))
		code = http.StatusPartialContent
	}
	w.Header().Set("Content-Length", strconv.FormatInt(size-from, 10))
	w.WriteHeader(code)
	n, err := io.CopyBuffer(out, onlyReader{blob}, make([]byte, 4*tunnel.FrameSize))
	g.metrics.blobBytes.Add(float64(n))
	if err != nil {
		return fmt.Errorf("send blob: %w", err)
	}
	return nil
}

// sendPacked leaves the frame without its end when the blob fails, so that what
// arrived can never pass for the whole.
func (s *session) sendPacked(out io.Writer, blob io.Reader) error {
	enc, err := encoder(out)
	if err != nil {
		return err
	}
	defer func() {
		enc.Reset(nil)
		encoders.Put(enc)
	}()
	n, err := io.CopyBuffer(enc, onlyReader{blob}, make([]byte, 4*tunnel.FrameSize))
	s.gw.metrics.blobBytes.Add(float64(n))
	if err != nil {
		return fmt.Errorf("send blob: %w", err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("send end of blob: %w", err)
	}
	return nil
}

// onlyReader hides WriteTo, so that the copy keeps to its buffer.
type onlyReader struct{ io.Reader }

var encoders sync.Pool

func encoder(out io.Writer) (*zstd.Encoder, error) {
	if enc, ok := encoders.Get().(*zstd.Encoder); ok {
		enc.Reset(out)
		return enc, nil
	}
	enc, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make encoder: %w", err)
	}
	return enc, nil
}

func acceptsZstd(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		if strings.TrimSpace(part) == "zstd" {
			return true
		}
	}
	return false
}

// parseRange reads "bytes=N-", the one form that is served.
func parseRange(header string, size int64) (int64, error) {
	if header == "" {
		return 0, nil
	}
	text, ok := strings.CutPrefix(header, "bytes=")
	if ok {
		text, ok = strings.CutSuffix(text, "-")
	}
	from, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || from < 0 || from >= size {
		return 0, fmt.Errorf("range %q of %d bytes", header, size)
	}
	return from, nil
}
