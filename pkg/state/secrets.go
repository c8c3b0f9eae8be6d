// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/pkg/engine"
)

// Labels, annotations and keys of the Secrets.
const (
	// labelState marks all Secrets of the engine and its agent: release, render, and
	// those of Data.
	labelState   = "convoy.kumodo.io/state"
	stateRelease = "release"
	stateRender  = "render"

	annotationDigest = "convoy.kumodo.io/digest"
	annotationChunks = "convoy.kumodo.io/chunks" // on the last chunk: how many there are
	annotationName   = "convoy.kumodo.io/release"

	keyRecord    = "record"    // zstd of the record in JSON
	keyInventory = "inventory" // digest of the inventory, where that is kept apart
	keyChunk     = "chunk"

	typeOpaque = "Opaque"
)

// Secrets is an engine.State in the Secrets of one namespace. Releases have one
// Secret each; layers have one for each 512 KiB of their compressed bytes, immutable,
// named by digest and number. All are found by label. There is one writer.
type Secrets struct {
	client *client
	codecs *codecs
	puts   chan struct{}
	cache  *cache

	mu sync.Mutex
	// index maps the digests of whole layers to their number of chunks; nil until it
	// was read. partial names chunks of layers that are not whole.
	index   map[string]int
	partial map[string][]string
	// storing are the layers that somebody stores now; closed when that is over.
	storing map[string]chan struct{}
	// written are the releases that have a Secret; inventories the digests of
	// inventories kept apart, by Release UID.
	written     map[string]bool
	inventories map[string]string
}

var _ engine.State = (*Secrets)(nil)

// Shared is what the states of one process have together: buffers, and the layers
// that were used last, which are the same under their digest wherever they lie.
type Shared struct {
	codecs *codecs
	puts   chan struct{}
	cache  *cache
}

// NewShared makes one.
func NewShared() (*Shared, error) {
	k, err := newCodecs()
	if err != nil {
		return nil, err
	}
	return &Shared{codecs: k, puts: make(chan struct{}, maxPuts), cache: newCache(cacheSize)}, nil
}

// NewSecrets makes the state for one namespace. It calls nothing.
func NewSecrets(config *rest.Config, namespace string) (*Secrets, error) {
	shared, err := NewShared()
	if err != nil {
		return nil, err
	}
	return NewSecretsShared(shared, config, namespace)
}

// NewSecretsShared makes one of many states in a process.
func NewSecretsShared(shared *Shared, config *rest.Config, namespace string) (*Secrets, error) {
	c, err := newClient(config, namespace)
	if err != nil {
		return nil, err
	}
	return &Secrets{
		client: c, codecs: shared.codecs, puts: shared.puts, cache: shared.cache,
		written: map[string]bool{}, inventories: map[string]string{}, storing: map[string]chan struct{}{},
	}, nil
}

// Idle lets go of buffers that are only kept to be used again. What is stored, and what
// was read of it last, stays.
func (s *Secrets) Idle() { s.codecs.idle() }

// plainUID is a UID that can be part of a name as it is.
var plainUID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func recordName(uid string) string {
	if plainUID.MatchString(uid) {
		return "convoy-release-" + uid
	}
	sum := sha256.Sum256([]byte(uid))
	return "convoy-release.x" + hex.EncodeToString(sum[:16])
}

// LoadRecords implements engine.Records.
func (s *Secrets) LoadRecords(ctx context.Context, yield func(*engine.Record) error) error {
	err := s.client.list(ctx, labelState+"="+stateRelease, true, func(in *secret) error {
		record, err := s.decodeRecord(ctx, in)
		if errors.Is(err, errUnreadable) {
			// One bad record must not keep all others from being enforced. The hub sends
			// its order again; nothing is deleted for it.
			logr.FromContextOrDiscard(ctx).Error(err, "record left out", "secret", in.Metadata.Name)
			return nil
		}
		if err != nil {
			return fmt.Errorf("secret %s: %w", in.Metadata.Name, err)
		}
		s.mu.Lock()
		s.written[record.UID] = true
		if apart := string(in.Data[keyInventory]); apart != "" {
			s.inventories[record.UID] = apart
		}
		s.mu.Unlock()
		return yield(record)
	})
	if err != nil {
		return fmt.Errorf("load records: %w", err)
	}
	return nil
}

func (s *Secrets) decodeRecord(ctx context.Context, in *secret) (*engine.Record, error) {
	plain, err := s.codecs.expand(in.Data[keyRecord], maxRecord)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	var record engine.Record
	if err := json.Unmarshal(plain, &record); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	digest := string(in.Data[keyInventory])
	if digest == "" {
		return &record, nil
	}
	apart, err := s.OpenRender(ctx, digest)
	if errors.Is(err, engine.ErrNotStored) {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open inventory: %w", err)
	}
	err = json.NewDecoder(io.LimitReader(apart, maxRecord)).Decode(&record.Inventory)
	if err = errors.Join(err, apart.Close()); err != nil {
		return nil, fmt.Errorf("read inventory: %w", err)
	}
	return &record, nil
}

// SaveRecord implements engine.Records.
func (s *Secrets) SaveRecord(ctx context.Context, record *engine.Record) error {
	out := &secret{
		Type: typeOpaque,
		Metadata: secretMeta{
			Name:        recordName(record.UID),
			Labels:      map[string]string{labelState: stateRelease},
			Annotations: map[string]string{annotationName: record.Release.Namespace + "/" + record.Release.Name},
		},
	}
	packed, err := s.packRecord(record)
	if err != nil {
		return err
	}
	out.Data = map[string][]byte{keyRecord: packed}
	s.mu.Lock()
	oldInventory := s.inventories[record.UID]
	s.mu.Unlock()
	inventory := ""
	if len(packed) > inlineSize {
		if inventory, err = s.putInventory(ctx, record); err != nil {
			return err
		}
		short := *record
		short.Inventory = nil
		if packed, err = s.packRecord(&short); err != nil {
			return err
		}
		out.Data = map[string][]byte{keyRecord: packed, keyInventory: []byte(inventory)}
	}
	if err := s.write(ctx, out, record.UID); err != nil {
		return fmt.Errorf("write record %s: %w", record.UID, err)
	}
	s.mu.Lock()
	delete(s.inventories, record.UID)
	if inventory != "" {
		s.inventories[record.UID] = inventory
	}
	s.mu.Unlock()
	if oldInventory != "" && oldInventory != inventory {
		return s.dropLayer(ctx, oldInventory)
	}
	return nil
}

func (s *Secrets) packRecord(record *engine.Record) ([]byte, error) {
	plain, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode record %s: %w", record.UID, err)
	}
	return s.codecs.pack(plain), nil
}

func (s *Secrets) putInventory(ctx context.Context, record *engine.Record) (string, error) {
	plain, err := json.Marshal(record.Inventory)
	if err != nil {
		return "", fmt.Errorf("encode inventory of %s: %w", record.UID, err)
	}
	sum := sha256.Sum256(plain)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	s.mu.Lock()
	s.inventories[record.UID+" new"] = digest // not to be tidied away meanwhile
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.inventories, record.UID+" new")
		s.mu.Unlock()
	}()
	return digest, s.PutRender(ctx, digest, bytes.NewReader(plain))
}

// write updates the Secret, or makes it when it is not there.
func (s *Secrets) write(ctx context.Context, out *secret, uid string) error {
	s.mu.Lock()
	there := s.written[uid]
	s.mu.Unlock()
	var err error
	if there {
		if err = s.client.update(ctx, out); apierrors.IsNotFound(err) {
			err = s.client.create(ctx, out)
		}
	} else if err = s.client.create(ctx, out); apierrors.IsAlreadyExists(err) {
		err = s.client.update(ctx, out)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.written[uid] = true
	s.mu.Unlock()
	return nil
}

// DeleteRecord implements engine.Records.
func (s *Secrets) DeleteRecord(ctx context.Context, uid string) error {
	if err := s.client.remove(ctx, recordName(uid)); err != nil {
		return fmt.Errorf("delete record %s: %w", uid, err)
	}
	s.mu.Lock()
	apart := s.inventories[uid]
	delete(s.inventories, uid)
	delete(s.written, uid)
	s.mu.Unlock()
	if apart != "" {
		return s.dropLayer(ctx, apart)
	}
	return nil
}
