// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/store"
)

// marker is there while a restore is under way, and holds the backup's digest.
const marker = "/restoring"

// part is a blob that comes in parts.
type part struct {
	store.Pending
	sum     hash.Hash
	written int64
}

// Write restores pieces, in the order in which Read gave them. The first pieces of
// a backup need a hub that has nothing; further ones, and those of a restore that
// is begun again, have to be of the same backup. What is there already is left as
// it is. With last the restore is over, and Options.Restored is called.
func (b *Backup) Write(ctx context.Context, hubID, backup string, pieces []v1alpha1.BackupPiece, last bool) error {
	if hubID != b.options.HubID {
		return fmt.Errorf("%w: of %q, and this is %q", ErrOtherHub, hubID, b.options.HubID)
	}
	if len(pieces) > maxPieces {
		return fmt.Errorf("%w: %d pieces in one request, at most %d", ErrPiece, len(pieces), maxPieces)
	}
	if err := b.begin(ctx, backup); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, piece := range pieces {
		write := b.writeBlob
		switch {
		case len(piece.Name) > maxName:
			return fmt.Errorf("%w: piece %d: its name is too long", ErrPiece, i)
		case piece.Kind == v1alpha1.BackupKey:
			write = b.writeKey
		case piece.Kind != v1alpha1.BackupBlob:
			return fmt.Errorf("%w: piece %d: kind %q is not known", ErrPiece, i, piece.Kind)
		}
		if err := write(ctx, piece); err != nil {
			return fmt.Errorf("piece %d, %s %s: %w", i, piece.Kind, piece.Name, err)
		}
	}
	if !last {
		return nil
	}
	if len(b.pending) > 0 {
		return fmt.Errorf("%w: %d blobs are not whole", ErrPiece, len(b.pending))
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	if _, err := b.options.Etcd.Delete(ctx, b.options.Prefix+marker); err != nil {
		return fmt.Errorf("end the restore: %w", err)
	}
	b.options.Restored()
	return nil
}

// begin sees that this restore may go on, or may begin.
func (b *Backup) begin(ctx context.Context, backup string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	key := b.options.Prefix + marker
	found, err := b.options.Etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("look for a restore: %w", err)
	}
	if len(found.Kvs) > 0 {
		if at := string(found.Kvs[0].Value); at != backup {
			return fmt.Errorf("%w: a restore of another backup (%.20s) was begun and has not ended", ErrNotEmpty, at)
		}
		return nil
	}
	for _, p := range passes {
		if p.folder != "" || p.rest {
			continue
		}
		there, err := b.options.Etcd.Get(ctx, b.options.Prefix+p.under, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return fmt.Errorf("look for %s: %w", p.name, err)
		}
		if there.Count > 0 {
			return fmt.Errorf("%w: it has %d %s", ErrNotEmpty, there.Count, p.name)
		}
	}
	answer, err := b.options.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, backup)).Commit()
	if err != nil {
		return fmt.Errorf("begin the restore: %w", err)
	}
	if !answer.Succeeded {
		return fmt.Errorf("%w: another restore began at the same time", ErrNotEmpty)
	}
	return nil
}

// writeKey makes a key, unless it is there: it was restored before, and the hub may
// have written it since.
func (b *Backup) writeKey(ctx context.Context, piece v1alpha1.BackupPiece) error {
	if !strings.HasPrefix(piece.Name, "/") || b.skipped(piece.Name) {
		return fmt.Errorf("%w: not a name of a backup", ErrPiece)
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	key := b.options.Prefix + piece.Name
	_, err := b.options.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(piece.Data))).Commit()
	return err //nolint:wrapcheck // Write names the piece
}

func (b *Backup) skipped(name string) bool {
	for _, skip := range append([]string{marker}, b.options.Skip...) {
		if name == skip {
			return true
		}
	}
	return false
}

// writeBlob adds a part to a blob, and names the blob when it is whole.
func (b *Backup) writeBlob(ctx context.Context, piece v1alpha1.BackupPiece) error {
	folder, digits, ok := strings.Cut(piece.Name, "/")
	if _, err := store.CheckDigest("sha256:" + digits); !ok || err != nil || (folder != "sha256" && folder != "sealed") {
		return fmt.Errorf("%w: not the name of a blob", ErrPiece)
	}
	end := piece.Offset + int64(len(piece.Data))
	if piece.Offset < 0 || end > piece.Size || piece.Size > store.MaxStoredBytes {
		return fmt.Errorf("%w: bytes %d to %d of %d", ErrPiece, piece.Offset, end, piece.Size)
	}
	p := b.pending[piece.Name]
	if piece.Offset == 0 {
		if p != nil {
			delete(b.pending, piece.Name) // of a restore that was broken off
			if err := p.Abort(); err != nil {
				return err //nolint:wrapcheck // Write names the piece
			}
		}
		if len(b.pending) >= maxPending {
			return fmt.Errorf("%w: %d other blobs are not whole yet", ErrPiece, len(b.pending))
		}
		pending, err := b.options.Renders.Create(ctx)
		if err != nil {
			return err //nolint:wrapcheck // Write names the piece
		}
		p = &part{Pending: pending, sum: sha256.New()}
		b.pending[piece.Name] = p
	}
	if p == nil || p.written != piece.Offset {
		return fmt.Errorf("%w: bytes %d to %d of %d do not follow what came before", ErrPiece, piece.Offset, end, piece.Size)
	}
	if _, err := p.Write(piece.Data); err != nil {
		return err //nolint:wrapcheck // Write names the piece
	}
	p.sum.Write(piece.Data)
	p.written = end
	if end < piece.Size {
		return nil
	}
	delete(b.pending, piece.Name)
	// A sealed blob proves itself when it is read; only its key can tell.
	if folder == "sha256" && hex.EncodeToString(p.sum.Sum(nil)) != digits {
		if err := p.Abort(); err != nil {
			return err //nolint:wrapcheck // Write names the piece
		}
		return fmt.Errorf("%w: %w", ErrPiece, store.ErrCorrupt)
	}
	return p.Commit(piece.Name) //nolint:wrapcheck // Write names the piece
}
