// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/source/snapshot"
)

// cache keeps snapshots on disk: DIR/<source>-<commit>, where source is a hash of
// whose it is and where it came from, so that nobody is given what was fetched
// with another one's credentials. What is being fetched lies in DIR/tmp-*.
type cache struct {
	dir       string
	most      int64
	clock     clock.PassiveClock
	bytes     prometheus.Gauge
	evictions prometheus.Counter

	mu      sync.Mutex
	entries map[string]*cached
	total   int64
}

type cached struct {
	size int64
	used time.Time
	open *snapshot.Snapshot // nil: not kept open
}

const tempPrefix = "tmp-"

// openCache takes over what an earlier process left, and removes what it left
// half done.
func openCache(dir string, most int64, clock clock.PassiveClock, m *metrics) (*cache, error) {
	dir, err := filepath.Abs(dir) // workers write into it, and run in another folder
	if err != nil {
		return nil, fmt.Errorf("cache of sources: %w", err)
	}
	c := &cache{dir: dir, most: most, clock: clock, bytes: m.cacheBytes, evictions: m.evictions, entries: map[string]*cached{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cache of sources: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cache of sources: %w", err)
	}
	for _, entry := range found {
		if entry.Name() == imagesName {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		size, used, err := measure(path)
		if err != nil || strings.HasPrefix(entry.Name(), tempPrefix) {
			if err := os.RemoveAll(path); err != nil {
				return nil, fmt.Errorf("cache of sources: %w", err)
			}
			continue
		}
		c.entries[entry.Name()] = &cached{size: size, used: used}
		c.total += size
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.evictLocked("")
}

func measure(path string) (size int64, used time.Time, err error) {
	for _, name := range []string{"index", "content"} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			return 0, time.Time{}, err
		}
		size += info.Size()
		used = info.ModTime()
	}
	return size, used, nil
}

// sourceKey names whose snapshot it is and from where.
func sourceKey(parts ...string) string { return longKey(parts...)[:32] }

// longKey is a digest of texts, hexadecimal.
func longKey(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%q", part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// get gives a snapshot that is there, or nil. A corrupt one is removed and counts
// as not there.
func (c *cache) get(name string) *snapshot.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entries[name]
	if entry == nil {
		return nil
	}
	if entry.open != nil && entry.open.Corrupt() {
		// Found while it was read: the next who wants it fetches it again.
		_ = c.removeLocked(name)
		return nil
	}
	entry.used = c.clock.Now()
	if entry.open == nil {
		open, err := snapshot.Open(filepath.Join(c.dir, name))
		if err != nil {
			// Fetched again; an error of the removal comes back when that is put.
			_ = c.removeLocked(name)
			return nil
		}
		entry.open = open
		c.closeSomeLocked(name)
	}
	return entry.open
}

// path of a snapshot's folder.
func (c *cache) path(name string) string { return filepath.Join(c.dir, name) }

// temp makes a folder for a snapshot that is being fetched. Where all snapshots are kept
// is made again, if somebody took it away: they are fetched again.
func (c *cache) temp() (string, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(c.dir, tempPrefix)
}

// put takes a snapshot's folder over under its name.
func (c *cache) put(temp, name string) (*snapshot.Snapshot, error) {
	open, err := snapshot.Open(temp)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.removeLocked(name); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, filepath.Join(c.dir, name)); err != nil {
		return nil, err
	}
	c.entries[name] = &cached{size: open.Size(), used: c.clock.Now(), open: open}
	c.total += open.Size()
	c.closeSomeLocked(name)
	return open, c.evictLocked(name)
}

func (c *cache) removeLocked(name string) error {
	if entry := c.entries[name]; entry != nil {
		c.total -= entry.size
		delete(c.entries, name)
	}
	c.bytes.Set(float64(c.total))
	err := os.RemoveAll(filepath.Join(c.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// evictLocked makes room, the longest unused first; keep stays in any case.
func (c *cache) evictLocked(keep string) error {
	var errs []error
	for _, name := range c.byUseLocked() {
		if c.total <= c.most {
			break
		}
		if name != keep {
			c.evictions.Inc()
			errs = append(errs, c.removeLocked(name))
		}
	}
	c.bytes.Set(float64(c.total))
	return errors.Join(errs...)
}

// closeSomeLocked lets go of the longest unused snapshots beyond maxOpenSnapshots.
// They are not closed: somebody may be reading; the runtime does it when nobody is.
func (c *cache) closeSomeLocked(keep string) {
	open := 0
	for _, entry := range c.entries {
		if entry.open != nil {
			open++
		}
	}
	for _, name := range c.byUseLocked() {
		if open <= maxOpenSnapshots {
			return
		}
		if entry := c.entries[name]; entry.open != nil && name != keep {
			entry.open = nil
			open--
		}
	}
}

// byUseLocked lists names, the longest unused first.
func (c *cache) byUseLocked() []string {
	names := make([]string, 0, len(c.entries))
	for name := range c.entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(c.entries[a].used.Compare(c.entries[b].used), cmp.Compare(a, b)) })
	return names
}
