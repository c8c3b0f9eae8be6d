// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

const (
	archiveFormat = "convoy.backup/v1"
	// maxArchiveLine bounds a line of an archive: a piece of a backup, in base64.
	maxArchiveLine = 16 << 20
	// archiveWindow bounds the memory for unpacking one.
	archiveWindow = 64 << 20
)

// Errors of archives.
var (
	errArchive   = errors.New("not a backup of convoy")
	errTruncated = errors.New("the backup is cut off or changed")
)

// archiveHead is the first line of an archive.
type archiveHead struct {
	Format  string    `json:"format"`
	HubID   string    `json:"hubID"`
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

// archiveLine is every further line. One field is set.
type archiveLine struct {
	Secret *archiveSecret            `json:"secret,omitempty"`
	Piece  *corev1alpha1.BackupPiece `json:"piece,omitempty"`
	End    *archiveEnd               `json:"end,omitempty"`
}

type archiveSecret struct {
	Name string            `json:"name"`
	Data map[string][]byte `json:"data"`
}

// archiveEnd is the last line: what came before, so that nothing is missing.
type archiveEnd struct {
	Pieces int64  `json:"pieces"`
	SHA256 string `json:"sha256"` // over all lines before, unpacked
}

// archiveWriter writes JSON lines, packed with zstd.
type archiveWriter struct {
	pack   *zstd.Encoder
	sum    hash.Hash
	pieces int64
}

func newArchiveWriter(w io.Writer, head archiveHead) (*archiveWriter, error) {
	pack, err := zstd.NewWriter(w)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	a := &archiveWriter{pack: pack, sum: sha256.New()}
	head.Format = archiveFormat
	return a, a.line(head)
}

func (a *archiveWriter) line(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	raw = append(raw, '\n')
	a.sum.Write(raw)
	if _, err := a.pack.Write(raw); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

func (a *archiveWriter) secret(name string, data map[string][]byte) error {
	return a.line(archiveLine{Secret: &archiveSecret{Name: name, Data: data}})
}

func (a *archiveWriter) piece(piece corev1alpha1.BackupPiece) error {
	a.pieces++
	return a.line(archiveLine{Piece: &piece})
}

// end writes the last line. An archive without it is not whole.
func (a *archiveWriter) end() error {
	sum := hex.EncodeToString(a.sum.Sum(nil))
	if err := a.line(archiveLine{End: &archiveEnd{Pieces: a.pieces, SHA256: sum}}); err != nil {
		return err
	}
	if err := a.pack.Close(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// readArchive calls each for every line between the first and the last, and fails
// with errTruncated unless the archive is whole. digest names the archive.
func readArchive(r io.Reader, each func(archiveHead, archiveLine) error) (head archiveHead, digest string, err error) {
	unpack, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(archiveWindow))
	if err != nil {
		return head, "", fmt.Errorf("unpacking: %w", err)
	}
	defer unpack.Close()
	lines := bufio.NewScanner(unpack)
	lines.Buffer(make([]byte, 64<<10), maxArchiveLine)
	sum := sha256.New()
	next := func() ([]byte, error) {
		if lines.Scan() {
			return lines.Bytes(), nil
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", errTruncated, err)
		}
		return nil, errTruncated
	}
	raw, err := next()
	if err != nil {
		return head, "", fmt.Errorf("%w: %w", errArchive, err)
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.Format != archiveFormat {
		return head, "", errArchive
	}
	add := func(raw []byte) {
		sum.Write(raw)
		sum.Write([]byte{'\n'})
	}
	add(raw)
	for pieces := int64(0); ; {
		if raw, err = next(); err != nil {
			return head, "", err
		}
		var line archiveLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return head, "", fmt.Errorf("%w: %w", errTruncated, err)
		}
		if line.End != nil {
			digest = hex.EncodeToString(sum.Sum(nil))
			if line.End.SHA256 != digest || line.End.Pieces != pieces || lines.Scan() {
				return head, "", errTruncated
			}
			return head, digest, nil
		}
		add(raw)
		if line.Piece != nil {
			pieces++
		}
		if err := each(head, line); err != nil {
			return head, "", err
		}
	}
}
