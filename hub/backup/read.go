// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/store"
)

// cursor says where the next answer begins. All of etcd is read at one revision.
type cursor struct {
	Pass     int    `json:"p"`
	Revision int64  `json:"r,omitempty"`
	After    string `json:"a,omitempty"` // the last name that was given in full
	Blob     string `json:"b,omitempty"` // a blob that was given in part
	Offset   int64  `json:"o,omitempty"`
}

func (c cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		return "" // numbers and strings can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(text string) (cursor, error) {
	var c cursor
	if text == "" {
		return c, nil
	}
	if len(text) > maxCursor {
		return c, ErrCursor
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || c.Pass < 0 || c.Pass >= len(passes) || c.Offset < 0 {
		return cursor{}, ErrCursor
	}
	return c, nil
}

// page is one answer that is being filled.
type page struct {
	pieces []v1alpha1.BackupPiece
	bytes  int
}

func (p *page) full() bool { return p.bytes >= pageBytes || len(p.pieces) >= pagePieces }

func (p *page) add(piece v1alpha1.BackupPiece) {
	p.pieces = append(p.pieces, piece)
	p.bytes += len(piece.Data)
}

// Read gives the pieces at a cursor ("" for the first), and the cursor after them,
// "" when there are no more. Blobs come first, as they are at each answer: one that
// is stored meanwhile may be in the backup, and one that an object names is.
func (b *Backup) Read(ctx context.Context, text string) ([]v1alpha1.BackupPiece, string, error) {
	at, err := parseCursor(text)
	if err != nil {
		return nil, "", err
	}
	if at.Revision == 0 {
		if at.Revision, err = b.revision(ctx); err != nil {
			return nil, "", err
		}
	}
	p := &page{}
	for !p.full() {
		read := b.readKeys
		if passes[at.Pass].folder != "" {
			read = b.readBlobs
		}
		over, err := read(ctx, p, &at)
		if err != nil {
			return nil, "", fmt.Errorf("read %s: %w", passes[at.Pass].name, err)
		}
		if !over {
			continue
		}
		if at.Pass+1 == len(passes) {
			return p.pieces, "", nil
		}
		at = cursor{Pass: at.Pass + 1, Revision: at.Revision}
	}
	return p.pieces, at.String(), nil
}

// revision of etcd now.
func (b *Backup) revision(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	answer, err := b.options.Etcd.Get(ctx, b.options.Prefix+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read the revision of etcd: %w", err)
	}
	return answer.Header.Revision, nil
}

// readKeys adds keys of a pass; over: there are no more.
func (b *Backup) readKeys(ctx context.Context, p *page, at *cursor) (over bool, err error) {
	pass := passes[at.Pass]
	under := b.options.Prefix + pass.under
	from := under
	if at.After != "" {
		from = b.options.Prefix + at.After + "\x00"
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	answer, err := b.options.Etcd.Get(ctx, from,
		clientv3.WithRange(clientv3.GetPrefixRangeEnd(under)), clientv3.WithLimit(keysAtOnce), clientv3.WithRev(at.Revision))
	if errors.Is(err, rpctypes.ErrCompacted) {
		return false, fmt.Errorf("%w: %w", ErrTooOld, err)
	}
	if err != nil {
		return false, err //nolint:wrapcheck // Read says what was read
	}
	for _, kv := range answer.Kvs {
		if p.full() {
			return false, nil
		}
		name := strings.TrimPrefix(string(kv.Key), b.options.Prefix)
		at.After = name
		if pass.rest && b.elsewhere(name) {
			continue
		}
		p.add(v1alpha1.BackupPiece{Kind: v1alpha1.BackupKey, Name: name, Size: int64(len(kv.Value)), Data: kv.Value})
	}
	return !answer.More, nil
}

// elsewhere says that a name is of another pass, or of none.
func (b *Backup) elsewhere(name string) bool {
	return slices.Contains(b.options.Skip, name) || name == marker ||
		slices.ContainsFunc(passes, func(p pass) bool { return !p.rest && p.under != "" && strings.HasPrefix(name, p.under) })
}

// readBlobs adds blobs of a folder, by name; over: there are no more.
func (b *Backup) readBlobs(ctx context.Context, p *page, at *cursor) (over bool, err error) {
	if at.Blob == "" {
		var names []string
		err := b.options.Renders.List(ctx, passes[at.Pass].folder, func(name string, _ time.Time) error {
			if name > at.After {
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return false, err //nolint:wrapcheck // Read says what was read
		}
		if len(names) == 0 {
			return true, nil
		}
		slices.Sort(names)
		for _, name := range names[:min(len(names), pagePieces)] {
			if p.full() {
				return false, nil
			}
			at.Blob, at.Offset = name, 0
			if err := b.readBlob(ctx, p, at); err != nil {
				return false, err
			}
			if at.Blob != "" {
				return false, nil
			}
		}
		return false, nil
	}
	return false, b.readBlob(ctx, p, at)
}

// readBlob adds what fits of the blob at the cursor.
func (b *Backup) readBlob(ctx context.Context, p *page, at *cursor) (err error) {
	blob, size, err := b.options.Renders.Open(ctx, at.Blob)
	if errors.Is(err, store.ErrNotFound) {
		at.After, at.Blob, at.Offset = at.Blob, "", 0 // collected meanwhile
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // Read says what was read
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	if _, err := io.CopyN(io.Discard, blob, at.Offset); err != nil {
		return fmt.Errorf("%s: %w", at.Blob, err)
	}
	piece := make([]byte, min(size-at.Offset, pageBytes))
	if _, err := io.ReadFull(blob, piece); err != nil {
		return fmt.Errorf("%s: %w", at.Blob, err)
	}
	p.add(v1alpha1.BackupPiece{Kind: v1alpha1.BackupBlob, Name: at.Blob, Offset: at.Offset, Size: size, Data: piece})
	at.Offset += int64(len(piece))
	if at.Offset == size {
		at.After, at.Blob, at.Offset = at.Blob, "", 0
	}
	return nil
}
