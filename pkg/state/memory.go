// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"kumodo.io/convoy/pkg/engine"
)

// Memory is an engine.State that lives as long as its process. It is for tests, and
// for Runners whose state is nobody's to keep.
type Memory struct {
	mu      sync.Mutex
	records map[string][]byte // JSON by Release UID; guarded by mu
	renders map[string][]byte // by digest; guarded by mu
}

var _ engine.State = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory() *Memory {
	return &Memory{records: map[string][]byte{}, renders: map[string][]byte{}}
}

// LoadRecords implements engine.Records.
func (m *Memory) LoadRecords(_ context.Context, yield func(*engine.Record) error) error {
	m.mu.Lock()
	all := maps.Clone(m.records)
	m.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		var record engine.Record
		if err := json.Unmarshal(all[uid], &record); err != nil {
			return fmt.Errorf("decode record %s: %w", uid, err)
		}
		if err := yield(&record); err != nil {
			return err
		}
	}
	return nil
}

// SaveRecord implements engine.Records.
func (m *Memory) SaveRecord(_ context.Context, record *engine.Record) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode record %s: %w", record.UID, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[record.UID] = raw
	return nil
}

// DeleteRecord implements engine.Records.
func (m *Memory) DeleteRecord(_ context.Context, uid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, uid)
	return nil
}

// PutRender implements engine.Renders.
func (m *Memory) PutRender(_ context.Context, digest string, from io.Reader) error {
	m.mu.Lock()
	_, there := m.renders[digest]
	m.mu.Unlock()
	if there {
		return nil
	}
	raw, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("read layer %s: %w", digest, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renders[digest] = raw
	return nil
}

// OpenRender implements engine.Renders.
func (m *Memory) OpenRender(_ context.Context, digest string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	raw, there := m.renders[digest]
	if !there {
		return nil, fmt.Errorf("layer %s: %w", digest, engine.ErrNotStored)
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

// RetainRenders implements engine.Renders.
func (m *Memory) RetainRenders(_ context.Context, keep func(string) bool) error {
	m.mu.Lock()
	digests := slices.Collect(maps.Keys(m.renders))
	m.mu.Unlock()
	for _, digest := range digests {
		if keep(digest) {
			continue
		}
		m.mu.Lock()
		delete(m.renders, digest)
		m.mu.Unlock()
	}
	return nil
}
