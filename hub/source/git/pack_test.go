// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // the trailer of a pack is SHA-1 by its format
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"kumodo.io/convoy/hub/source/fault"
)

// rawPack builds packs that no git would.
type rawPack struct {
	bytes.Buffer
	count uint32
}

func newRawPack() *rawPack {
	p := &rawPack{}
	p.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	return p
}

func (p *rawPack) add(t testing.TB, kind plumbing.ObjectType, size int, reference, content []byte) (offset int) {
	t.Helper()
	p.count++
	offset = p.Len()
	first := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	p.WriteByte(first)
	p.Write(reference)
	w := zlib.NewWriter(&p.Buffer)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return offset
}

func (p *rawPack) write(t testing.TB) string {
	t.Helper()
	data := bytes.Clone(p.Bytes())
	binary.BigEndian.PutUint32(data[8:], p.count)
	sum := sha1.Sum(data) //nolint:gosec // see above
	name := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(name, append(data, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// delta that repeats the whole base n times.
func repeat(base, n int) []byte {
	d := binary.AppendUvarint(nil, uint64(base))
	d = binary.AppendUvarint(d, uint64(base*n))
	for range n {
		d = append(d, 0x80|0x10|0x20|0x40, byte(base), byte(base>>8), byte(base>>16))
	}
	return d
}

func index(t *testing.T, p *rawPack) (*pack, error) {
	t.Helper()
	opened, err := openPack(p.write(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.close(); err != nil {
			t.Error(err)
		}
	})
	return opened, opened.index()
}

// boundBytes that a pack which is refused may make one allocate in all: unlike the time
// that takes it does not depend on what else the machine does.
const boundBytes = 1 << 30

// allocated are the bytes that a function allocates in all, given back or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAChainOfDeltasThatGrowsIsCutAtTheLimitOfAFile(t *testing.T) {
	p := newRawPack()
	content := bytes.Repeat([]byte("x"), 1<<16)
	at := p.add(t, plumbing.BlobObject, len(content), nil, content)
	size := len(content)
	for range 8 { // 64 KiB, 512 KiB, ... 1 TiB
		d := repeat(min(size, 0xffffff), 8)
		offset := p.Len()
		at = p.add(t, plumbing.OFSDeltaObject, len(d), offsetTo(offset-at), d)
		size *= 8
	}
	var opened *pack
	var err error
	used := allocated(func() { opened, err = index(t, p) })
	if err != nil {
		t.Fatal(err)
	}
	if len(opened.huge) == 0 || used > boundBytes {
		t.Errorf("%d huge objects after %d MiB", len(opened.huge), used>>20)
	}
	if _, err := opened.get(plumbing.NewHash(strings.Repeat("1", 40)), plumbing.BlobObject, MaxFileBytes); err == nil {
		t.Error("a huge object was given")
	}
}

// offsetTo encodes the distance to a base.
func offsetTo(distance int) []byte {
	out := []byte{byte(distance & 0x7f)}
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		out = append([]byte{byte(distance&0x7f) | 0x80}, out...)
	}
	return out
}

func TestBrokenPacksAreToldAsSuch(t *testing.T) {
	blob := []byte("hello")
	hash := plumbing.ComputeHash(plumbing.BlobObject, blob)
	tests := map[string]func(*rawPack){
		"a delta without a base":    func(p *rawPack) { p.add(t, plumbing.REFDeltaObject, 3, bytes.Repeat([]byte{7}, 20), []byte{5, 5, 0}) },
		"an object that is shorter": func(p *rawPack) { p.add(t, plumbing.BlobObject, 500, nil, blob) },
		"an object that is longer":  func(p *rawPack) { p.add(t, plumbing.BlobObject, 3, nil, blob) },
		"a delta that is none": func(p *rawPack) {
			p.add(t, plumbing.BlobObject, len(blob), nil, blob)
			p.add(t, plumbing.REFDeltaObject, 3, hash[:], []byte{5, 9, 0})
		},
		"a kind that does not exist":  func(p *rawPack) { p.add(t, plumbing.ObjectType(5), len(blob), nil, blob) },
		"more objects than there are": func(p *rawPack) { p.count = 9 },
	}
	for name, fill := range tests {
		t.Run(name, func(t *testing.T) {
			p := newRawPack()
			fill(p)
			opened, err := index(t, p)
			if err == nil {
				_, err = opened.get(hash, plumbing.BlobObject, 100)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
	p := newRawPack()
	p.add(t, plumbing.BlobObject, len(blob), nil, blob)
	name := p.write(t)
	if err := os.Truncate(name, int64(p.Len())+3); err != nil {
		t.Fatal(err)
	}
	opened, err := openPack(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.index(); err == nil || !strings.Contains(err.Error(), "cut") {
		t.Errorf("a cut pack: %v", err)
	}
	if err := opened.close(); err != nil {
		t.Error(err)
	}
}

func TestTreesThatHoldEachOtherManyTimesComeToAnEnd(t *testing.T) {
	p := newRawPack()
	blob := []byte("a: b\n")
	p.add(t, plumbing.BlobObject, len(blob), nil, blob)
	leaf := plumbing.ComputeHash(plumbing.BlobObject, blob)
	entry := func(mode, name string, hash plumbing.Hash) []byte {
		return append([]byte(mode+" "+name+"\x00"), hash[:]...)
	}
	tree := entry("100644", "f", leaf)
	for range 12 {
		p.add(t, plumbing.TreeObject, len(tree), nil, tree)
		hash := plumbing.ComputeHash(plumbing.TreeObject, tree)
		tree = nil
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			tree = append(tree, entry("40000", name, hash)...)
		}
	}
	p.add(t, plumbing.TreeObject, len(tree), nil, tree)
	commit := []byte("tree " + plumbing.ComputeHash(plumbing.TreeObject, tree).String() + "\n\nx")
	p.add(t, plumbing.CommitObject, len(commit), nil, commit)
	opened, err := index(t, p)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	used := allocated(func() { _, _, err = extract(opened, plumbing.ComputeHash(plumbing.CommitObject, commit), dir) })
	if fault.ClassOf(err) != fault.ClassTooLarge || used > boundBytes {
		t.Errorf("after %d MiB: %v", used>>20, err)
	}
}

func TestNamesThatLeaveTheTreeAreRefused(t *testing.T) {
	for _, name := range []string{"..", ".", ".git", ".GIT", "a/b", "a\\b", ""} {
		if err := checkName(name, name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
	if err := checkName("..data", "..data"); err != nil {
		t.Errorf("..data: %v", err)
	}
}

// FuzzPack holds that no pack makes the indexer panic.
func FuzzPack(f *testing.F) {
	p := newRawPack()
	blob := []byte("hello")
	at := p.add(f, plumbing.BlobObject, len(blob), nil, blob)
	d := repeat(5, 2)
	p.add(f, plumbing.OFSDeltaObject, len(d), offsetTo(p.Len()-at), d)
	f.Add(p.Bytes()[12:], uint32(2))
	f.Fuzz(func(t *testing.T, body []byte, count uint32) {
		p := newRawPack()
		p.Write(body)
		p.count = count % 100
		opened, err := openPack(p.write(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.index(); err == nil {
			for hash := range opened.byHash {
				// Any answer will do.
				_, _ = opened.get(hash, plumbing.BlobObject, 1<<20)
			}
		}
		if err := opened.close(); err != nil {
			t.Error(err)
		}
	})
}

func TestMessagesOfServersAreCleanedForAStatus(t *testing.T) {
	got := fault.Clean("fatal: https://me:hunter2@git.example.test/x\nnot\tfound\x1b[31m" + strings.Repeat("y", 500))
	if strings.Contains(got, "hunter2") || strings.ContainsAny(got, "\n\t\x1b") || len(got) > maxErrorBytes+3 {
		t.Errorf("got %q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{"": 0, "90": 90 * time.Second, "-5": 0, "soon": 0, "Thu, 01 Jan 2026 00:01:00 GMT": time.Minute, "Wed, 31 Dec 2025 00:00:00 GMT": 0, "999999999": time.Hour} {
		if got := fault.RetryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
