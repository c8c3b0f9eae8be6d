// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/backup"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/keyset"
	"kumodo.io/convoy/pkg/version"
)

// errNotOpen: the API is served before the stores are open.
var errNotOpen = errors.New("the hub has not opened its stores yet: try again")

// backups is what the API server asks. The Backup is there once the stores are open.
type backups struct{ opened atomic.Pointer[backup.Backup] }

func (b *backups) Read(ctx context.Context, cursor string) ([]v1alpha1.BackupPiece, string, error) {
	opened := b.opened.Load()
	if opened == nil {
		return nil, "", errNotOpen
	}
	return opened.Read(ctx, cursor)
}

func (b *backups) Write(ctx context.Context, hubID, name string, pieces []v1alpha1.BackupPiece, last bool) error {
	opened := b.opened.Load()
	if opened == nil {
		return errNotOpen
	}
	return opened.Write(ctx, hubID, name, pieces, last)
}

// openBackup makes the Backup. A restore ends the hub: what it has in memory is of
// before.
func (h *hub) openBackup(renders store.Backend) error {
	made, err := backup.New(backup.Options{
		Etcd: h.server.EtcdClient(), Prefix: apiserver.EtcdPrefix, Skip: apiserver.OwnKeys(), Renders: renders, HubID: h.keys.HubID,
		Restored: func() { h.life.fail("restore", backup.ErrRestored) },
	})
	if err != nil {
		return fmt.Errorf("make the backup: %w", err)
	}
	h.backups.opened.Store(made)
	return nil
}

// about is what the hub says of itself. Counting what needs an old key takes a look
// at all there is, so that it is done only while there is one.
func (h *hub) about(ctx context.Context) (v1alpha1.HubStatus, error) {
	status := v1alpha1.HubStatus{HubID: h.keys.HubID, Version: version.Version, GatewayURL: h.config.Gateway.URL}
	add := func(set, id string, old bool, inUse int64) {
		status.Keys = append(status.Keys, v1alpha1.HubKey{Set: set, ID: id, Old: old, InUse: inUse})
	}
	away := h.unaware()
	for i, ca := range h.keys.HubCAs() {
		if i == 0 {
			add(keyset.HubCA, ca.ID, false, 0)
		} else {
			add(keyset.HubCA, ca.ID, true, away)
		}
	}
	signed := h.signedWith()
	for i, key := range h.keys.OrderKeys() {
		if i == 0 {
			add(keyset.OrderKey, key.KeyID, false, 0)
		} else {
			add(keyset.OrderKey, key.KeyID, true, signed[key.KeyID])
		}
	}
	add(keyset.SealingKey, h.keys.SealingKey.ID, false, 0)
	if len(h.keys.OldSealingKeys) > 0 {
		sealer := h.sealer.Load()
		if sealer == nil {
			return status, errNotOpen
		}
		sealed, err := sealer.SealedWith(ctx)
		if err != nil {
			return status, fmt.Errorf("count sealed layers: %w", err)
		}
		for _, key := range h.keys.OldSealingKeys {
			add(keyset.SealingKey, key.ID, true, sealed[key.ID])
		}
	}
	add(keyset.ServingCA, h.keys.ServingCA.ID, false, 0)
	return status, nil
}

// unaware counts the Clusters whose agent has not been here since this process
// began: it may know the oldest hub CA alone.
func (h *hub) unaware() int64 {
	count := int64(0)
	known := h.known.Load()
	if known == nil {
		return count
	}
	for _, cluster := range known.Clusters() {
		if cluster.Status.Agent != nil && !h.seen.has(cluster.UID) {
			count++
		}
	}
	return count
}

// signedWith counts the Releases whose order a key signed, by the key's ID.
func (h *hub) signedWith() map[string]int64 {
	counts := map[string]int64{}
	known := h.known.Load()
	if known == nil {
		return counts
	}
	for _, release := range known.Releases() {
		if order := release.Status.Order; order != nil {
			counts[order.KeyID]++
		}
	}
	return counts
}

// resealLayers seals again, once, what an old key sealed. What could not be sealed
// is said, and tried again at the next start.
func (h *hub) resealLayers(ctx context.Context) error {
	sealer := h.sealer.Load()
	if len(h.keys.OldSealingKeys) > 0 && sealer != nil {
		log := logr.FromContextOrDiscard(ctx)
		done, err := sealer.Reseal(ctx)
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Sealed layers are still sealed with an old key")
		}
		log.Info("Sealed layers were sealed with the current key", "count", done)
	}
	<-ctx.Done()
	return nil
}
