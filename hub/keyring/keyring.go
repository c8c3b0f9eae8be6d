// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"

	"kumodo.io/convoy/pkg/keyset"
)

// Names of the Secrets, and of the files without a host cluster.
const (
	SecretHubCA      = keyset.HubCA
	SecretOrderKey   = keyset.OrderKey
	SecretSealingKey = keyset.SealingKey
	SecretMACKey     = keyset.MACKey
	SecretServingCA  = keyset.ServingCA
)

// SecretNames lists them all: the hub gets and updates exactly these.
func SecretNames() []string { return keyset.Names() }

// CA, OrderKey and SealingKey are keys as the sets hold them.
type (
	CA         = keyset.CA
	OrderKey   = keyset.Signing
	SealingKey = keyset.Sealing
)

// Keyring is everything that the hub signs, seals and certifies with. Old keys are
// those that were rotated and not retired: accepted, used for nothing new.
type Keyring struct {
	// HubID names the hub. It outlives a rotation of the hub CA.
	HubID string
	// HubCA certifies agents, and people without a host cluster.
	HubCA     CA
	OldHubCAs []CA
	// OrderKey signs orders and heads.
	OrderKey     OrderKey
	OldOrderKeys []OrderKey
	// SealingKey encrypts the sealed layers at rest.
	SealingKey     SealingKey
	OldSealingKeys []SealingKey
	// MACKey masks the values of Secrets in renders. It never changes: that would
	// roll out the whole fleet.
	MACKey []byte
	// ServingCA certifies the API server towards the host's aggregator.
	ServingCA CA
}

// GatewayCA is the CA under which the gateway proves itself: the oldest that is
// accepted, since an agent that was away may know no other.
func (k *Keyring) GatewayCA() CA {
	oldest := k.HubCA
	for _, ca := range k.OldHubCAs {
		if !ca.Certificate.NotBefore.After(oldest.Certificate.NotBefore) {
			oldest = ca
		}
	}
	return oldest
}

// HubCAs are the current hub CA and those that are still accepted.
func (k *Keyring) HubCAs() []CA { return append([]CA{k.HubCA}, k.OldHubCAs...) }

// OrderKeys are the current order key and those that are still accepted.
func (k *Keyring) OrderKeys() []OrderKey { return append([]OrderKey{k.OrderKey}, k.OldOrderKeys...) }

// Load reads all keys from the vault and makes those that are empty.
func Load(ctx context.Context, vault Vault, clk clock.PassiveClock) (*Keyring, error) {
	k := &Keyring{}
	read := map[string]func(map[string][]byte) error{
		SecretHubCA: func(d map[string][]byte) (err error) {
			if k.HubID, err = keyset.HubID(d); err != nil {
				return err
			}
			k.HubCA, k.OldHubCAs, err = split(keyset.CAs(d))
			return err
		},
		SecretServingCA: func(d map[string][]byte) (err error) {
			k.ServingCA, _, err = split(keyset.CAs(d))
			return err
		},
		SecretOrderKey: func(d map[string][]byte) (err error) {
			k.OrderKey, k.OldOrderKeys, err = split(keyset.SigningKeys(d))
			return err
		},
		SecretSealingKey: func(d map[string][]byte) (err error) {
			k.SealingKey, k.OldSealingKeys, err = split(keyset.SealingKeys(d))
			return err
		},
		SecretMACKey: func(d map[string][]byte) (err error) {
			k.MACKey, err = keyset.MAC(d)
			return err
		},
	}
	for _, name := range SecretNames() {
		data, err := loadOrMake(ctx, vault, name, func() (map[string][]byte, error) { return keyset.Create(name, clk.Now()) })
		if err != nil {
			return nil, err
		}
		if err := read[name](data); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return k, nil
}

// split takes the current key from those before it.
func split[T any](keys []T, err error) (T, []T, error) {
	if err != nil {
		var none T
		return none, nil, err
	}
	return keys[0], keys[1:], nil
}

// loadOrMake gives what is stored, and stores something new where it is empty.
// When two hubs start together, both end with what was written first.
func loadOrMake(ctx context.Context, vault Vault, name string, create func() (map[string][]byte, error)) (map[string][]byte, error) {
	for range loadAttempts {
		data, version, err := vault.Get(ctx, name)
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("load %s: %w: %w", name, ErrMissing, err)
		}
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", name, err)
		}
		if len(data) > 0 {
			return data, nil
		}
		if data, err = create(); err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		err = vault.Update(ctx, name, data, version)
		if err == nil {
			return data, nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	return nil, fmt.Errorf("store %s: %w", name, ErrConflict)
}
