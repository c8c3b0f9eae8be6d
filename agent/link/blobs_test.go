// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"kumodo.io/convoy/pkg/tunnel"
)

// slowHub answers the request for a layer on each stream: with the head of an answer, and
// with its body in steps of some bytes, before each of which it waits.
type slowHub struct {
	tunnel.Mux
	head, body []byte
	step       int
	pause      time.Duration
	silent     bool // after the head and the first step
}

// Open implements tunnel.Mux.
func (h *slowHub) Open(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	go h.answer(far)
	return near, nil
}

func (h *slowHub) answer(c net.Conn) {
	defer func() { _ = c.Close() }() // the agent may have closed it
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || request.Header.Get("Accept-Encoding") != "zstd" {
		return
	}
	if _, err := c.Write(h.head); err != nil {
		return
	}
	for rest := h.body; len(rest) > 0; {
		<-time.After(h.pause)
		n := min(h.step, len(rest))
		if _, err := c.Write(rest[:n]); err != nil {
			return
		}
		if rest = rest[n:]; h.silent {
			break
		}
	}
	if h.silent || len(h.head) == 0 {
		_, _ = io.Copy(io.Discard, c) // until the agent gives up
	}
}

// link has a session with it, and a place for one download.
func (h *slowHub) link() *Link {
	l := &Link{fetches: make(chan struct{}, 1), arrived: make(chan struct{})}
	l.metrics = newMetrics(prometheus.NewRegistry(), l)
	l.session = &session{client: tunnel.NewClient(h)}
	return l
}

func layerOf(content []byte) tunnel.Layer {
	sum := sha256.Sum256(content)
	return tunnel.Layer{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// packed is content as a hub sends it.
func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // it has written nothing
	return w.EncodeAll(content, nil)
}

func noise(n int) []byte {
	out := make([]byte, n)
	rand.Read(out)
	return out
}

func headOf(body []byte, encoding string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n", len(body), encoding)
}

const zstdHeader = "Content-Encoding: zstd\r\n"

func TestADownloadThatMovesNoByteFor30SecondsIsGivenUp(t *testing.T) {
	content := noise(10_000)
	for name, hub := range map[string]*slowHub{
		"nothing comes at all":             {},
		"nothing comes after the head":     {head: headOf(content, ""), silent: true},
		"nothing comes after some bytes":   {head: headOf(content, ""), body: content, step: 100, silent: true},
		"nothing comes after some, packed": {head: headOf(packed(t, content), zstdHeader), body: packed(t, content), step: 100, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := hub.link()
				began := time.Now()
				body, err := l.Open(t.Context(), layerOf(content), false, "a")
				if err == nil {
					_, err = io.Copy(io.Discard, body)
					err = errors.Join(err, body.Close())
				}
				if !errors.Is(err, errStalled) {
					t.Errorf("it ends with %v", err)
				}
				if took := time.Since(began); took != tunnel.StallTimeout {
					t.Errorf("it is given up after %s, want %s", took, tunnel.StallTimeout)
				}
				select {
				case l.fetches <- struct{}{}:
				default:
					t.Error("the next download finds no place")
				}
			})
		})
	}
}

func TestADownloadThatMovesAByteNowAndThenGoesOn(t *testing.T) {
	content := noise(200_000)
	for name, encoding := range map[string]string{"as it is": "", "packed": zstdHeader} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := content
				if encoding != "" {
					sent = packed(t, content)
				}
				hub := &slowHub{head: headOf(sent, encoding), body: sent, step: 1000, pause: tunnel.StallTimeout - time.Second}
				body, err := hub.link().Open(t.Context(), layerOf(content), false, "a")
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(body)
				if err = errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes came, %v", len(got), err)
				}
			})
		})
	}
}

func TestADownloadIsNotGivenUpForWhatItsReaderTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := noise(10_000)
		hub := &slowHub{head: headOf(content, ""), body: content, step: 100}
		body, err := hub.link().Open(t.Context(), layerOf(content), false, "a")
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 0, len(content))
		for range 4 {
			part := make([]byte, len(content)/4)
			n, err := io.ReadFull(body, part)
			if got = append(got, part[:n]...); err != nil {
				t.Fatalf("after %d bytes: %v", len(got), err)
			}
			<-time.After(3 * tunnel.StallTimeout) // it writes them down
		}
		if err := body.Close(); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes came, %v", len(got), err)
		}
	})
}
