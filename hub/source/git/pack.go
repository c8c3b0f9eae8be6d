// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the trailer of a pack is SHA-1 by its format
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"kumodo.io/convoy/hub/source/fault"
)

// pack is a pack on disk with an index made by a pass over it. Objects are read
// one at a time; none larger than MaxFileBytes is ever in memory.
//
// go-git's own parser inflates whatever a pack holds into memory, so its parts
// are used here (scanner, deltas, hashes) and not itself.
type pack struct {
	file     *os.File
	scanner  *packfile.Scanner
	byOffset map[int64]*packed
	byHash   map[plumbing.Hash]*packed
	order    []*packed
	// huge are the sizes of objects that are too large. They are not hashed, which
	// would take seconds: a name that is in no index can only be one of them.
	huge   []int64
	cache  map[int64][]byte
	cached int
	oldest []int64
}

// packed is one object of a pack.
type packed struct {
	offset int64
	kind   plumbing.ObjectType // as stored: may be a delta
	size   int64               // of the object; for a delta: of what it makes
	base   *packed
	baseID plumbing.Hash // of a delta by name, until base is known
	hash   plumbing.Hash
}

func openPack(name string) (*pack, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &pack{
		file: file, scanner: packfile.NewScanner(file),
		byOffset: map[int64]*packed{}, byHash: map[plumbing.Hash]*packed{},
		cache: map[int64][]byte{},
	}, nil
}

func (p *pack) close() error { return p.file.Close() }

func broken(err error) error {
	return fault.Failf(fault.ClassUnreachable, "the pack that the server sent is broken: %s", fault.Clean(err.Error()))
}

// index reads the headers of all objects, then names them all.
func (p *pack) index() error {
	if err := p.checkTrailer(); err != nil {
		return err
	}
	_, count, err := p.scanner.Header()
	if err != nil {
		return broken(err)
	}
	if count > maxObjects {
		return fault.Failf(fault.ClassTooLarge, "the fetch has %d objects, at most %d are taken: the repository is too large without a shallow fetch", count, maxObjects)
	}
	for range count {
		if err := p.scan(); err != nil {
			return err
		}
	}
	return p.nameDeltas()
}

// checkTrailer compares the pack's last 20 bytes with the hash of the rest, so
// that a transfer that was cut is told as such.
func (p *pack) checkTrailer() error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size() - sha1.Size
	if size < 12 {
		return fault.Failf(fault.ClassUnreachable, "the pack that the server sent is cut")
	}
	sum := sha1.New() //nolint:gosec // see above
	if _, err := io.Copy(sum, io.NewSectionReader(p.file, 0, size)); err != nil {
		return err
	}
	var trailer [sha1.Size]byte
	if _, err := p.file.ReadAt(trailer[:], size); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), trailer[:]) {
		return fault.Failf(fault.ClassUnreachable, "the pack that the server sent is cut")
	}
	_, err = p.file.Seek(0, io.SeekStart)
	return err
}

// scan reads one object's header and streams over its content.
func (p *pack) scan() error {
	header, err := p.scanner.NextObjectHeader()
	if err != nil {
		return broken(err)
	}
	object := &packed{offset: header.Offset, kind: header.Type, size: header.Length}
	p.byOffset[object.offset] = object
	p.order = append(p.order, object)
	if header.Type.IsDelta() {
		if header.Type == plumbing.OFSDeltaObject {
			if object.base = p.byOffset[header.OffsetReference]; object.base == nil {
				return broken(errors.New("a delta without its base"))
			}
		}
		object.baseID = header.Reference
		begin := &beginning{}
		if _, _, err := p.scanner.NextObject(begin); err != nil {
			return broken(err)
		}
		if object.size, err = begin.targetSize(); err != nil {
			return broken(err)
		}
		return nil
	}
	if header.Length > MaxFileBytes {
		p.huge = append(p.huge, header.Length)
		if header.Length > maxInflatedBytes {
			return fault.Failf(fault.ClassTooLarge, "an object of %d MiB; a file may have %d MiB", header.Length>>20, MaxFileBytes>>20)
		}
		// Left to the scanner, which inflates it to nowhere.
		return nil
	}
	hasher := plumbing.NewHasher(header.Type, header.Length)
	if _, _, err := p.scanner.NextObject(&hasher); err != nil {
		return broken(err)
	}
	object.hash = hasher.Sum()
	p.byHash[object.hash] = object
	return nil
}

// beginning keeps the first bytes of a delta: the sizes of its base and of what it makes.
type beginning struct{ kept []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), 32-len(b.kept))]...)
	return len(p), nil
}

func (b *beginning) targetSize() (int64, error) {
	_, n := binary.Uvarint(b.kept)
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, m := binary.Uvarint(b.kept[n:])
	if m <= 0 || size > 1<<62 {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}

// nameDeltas resolves deltas until no more can be: one by name may stand before
// its base.
func (p *pack) nameDeltas() error {
	pending := p.order
	for {
		var later []*packed
		for _, object := range pending {
			if !object.kind.IsDelta() {
				continue
			}
			if object.base == nil {
				object.base = p.byHash[object.baseID]
			}
			if object.base == nil || object.base.kind.IsDelta() && object.base.hash.IsZero() && object.base.size <= MaxFileBytes {
				later = append(later, object)
				continue
			}
			if err := p.nameDelta(object); err != nil {
				return err
			}
		}
		if len(later) == 0 {
			return nil
		}
		if len(later) == len(pending) && len(p.huge) > 0 {
			p.huge = append(p.huge, 0) // their base is too large, and so are they for all that is known
			return nil
		}
		if len(later) == len(pending) {
			return broken(errors.New("deltas without their bases"))
		}
		pending = later
	}
}

func (p *pack) nameDelta(object *packed) error {
	if object.size > MaxFileBytes || object.base.size > MaxFileBytes {
		// Too large to be made: whatever names it is refused as too large.
		object.size = max(object.size, MaxFileBytes+1)
		p.huge = append(p.huge, object.size)
		return nil
	}
	content, kind, err := p.content(object)
	if err != nil {
		return err
	}
	object.hash = plumbing.ComputeHash(kind, content)
	p.byHash[object.hash] = object
	return nil
}

// content makes an object. The chain of deltas is walked with a loop: its length
// is the server's choice.
func (p *pack) content(object *packed) ([]byte, plumbing.ObjectType, error) {
	var chain []*packed
	at := object
	var content []byte
	for {
		if found, ok := p.cache[at.offset]; ok {
			content = found
			break
		}
		if !at.kind.IsDelta() {
			var err error
			if content, err = p.inflate(at, at.size); err != nil {
				return nil, 0, err
			}
			break
		}
		chain = append(chain, at)
		if len(chain) > maxDeltaDepth || at.base == nil {
			return nil, 0, broken(errors.New("a chain of deltas without an end"))
		}
		at = at.base
	}
	p.remember(at.offset, content)
	kind := at
	for kind.kind.IsDelta() {
		kind = kind.base
	}
	for i := len(chain) - 1; i >= 0; i-- {
		delta, err := p.inflate(chain[i], -1)
		if err != nil {
			return nil, 0, err
		}
		if content, err = packfile.PatchDelta(content, delta); err != nil {
			return nil, 0, broken(err)
		}
		if int64(len(content)) != chain[i].size {
			return nil, 0, broken(packfile.ErrInvalidDelta)
		}
		p.remember(chain[i].offset, content)
	}
	return content, kind.kind, nil
}

// remember keeps what may be a base again, within a budget; the oldest go first.
func (p *pack) remember(offset int64, content []byte) {
	if _, there := p.cache[offset]; there || len(content) > deltaCacheBytes/4 {
		return
	}
	p.cache[offset] = content
	p.cached += len(content)
	p.oldest = append(p.oldest, offset)
	for p.cached > deltaCacheBytes {
		p.cached -= len(p.cache[p.oldest[0]])
		delete(p.cache, p.oldest[0])
		p.oldest = p.oldest[1:]
	}
}

// inflate reads what is stored for an object, of a known size or (-1) a delta's.
func (p *pack) inflate(object *packed, size int64) ([]byte, error) {
	header, err := p.scanner.SeekObjectHeader(object.offset)
	if err != nil {
		return nil, broken(err)
	}
	if size >= 0 && header.Length != size || header.Length > MaxFileBytes {
		return nil, fault.Failf(fault.ClassTooLarge, "an object of %d MiB; a file may have %d MiB", header.Length>>20, MaxFileBytes>>20)
	}
	var content bytes.Buffer
	content.Grow(int(header.Length)) // at most MaxFileBytes; growing by doubling would cost three times that
	if _, _, err := p.scanner.NextObject(&content); err != nil {
		return nil, broken(err)
	}
	if int64(content.Len()) != header.Length {
		return nil, broken(errors.New("an object of another size than it says"))
	}
	return content.Bytes(), nil
}

// Sentinels of get.
var (
	errNoObject = errors.New("the object is not in the pack")
	errHuge     = errors.New("the object is too large")
)

// get reads an object by name.
func (p *pack) get(hash plumbing.Hash, want plumbing.ObjectType, limit int64) ([]byte, error) {
	object, ok := p.byHash[hash]
	switch {
	case !ok && len(p.huge) == 1:
		return nil, fmt.Errorf("%w: %d MiB", errHuge, p.huge[0]>>20)
	case !ok && len(p.huge) > 1:
		return nil, errHuge
	case !ok:
		return nil, errNoObject
	}
	if object.size > limit {
		return nil, fmt.Errorf("%w: %d bytes", errHuge, object.size)
	}
	content, kind, err := p.content(object)
	if err != nil {
		return nil, err
	}
	if kind != want {
		return nil, broken(fmt.Errorf("a %s in the place of a %s", kind, want))
	}
	return content, nil
}

// size of an object, for limits that are checked before it is read.
func (p *pack) size(hash plumbing.Hash) int64 {
	if object, ok := p.byHash[hash]; ok {
		return object.size
	}
	return 0
}
