// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"k8s.io/utils/clock"
)

// Names of the Secrets, and of the files without a host cluster.
const (
	SecretHubCA      = "convoy-hub-ca"
	SecretOrderKey   = "convoy-order-key"
	SecretSealingKey = "convoy-sealing-key"
	SecretMACKey     = "convoy-mac-key"
	SecretServingCA  = "convoy-serving-ca"
)

// SecretNames lists them all: the hub gets and updates exactly these.
func SecretNames() []string {
	return []string{SecretHubCA, SecretOrderKey, SecretSealingKey, SecretMACKey, SecretServingCA}
}

// Keys inside a Secret.
const (
	fieldCertificate = "tls.crt" // PEM
	fieldPrivateKey  = "tls.key" // PEM, PKCS 8
	fieldKey         = "key"     // raw bytes; the order key PEM, PKCS 8
)

// Keyring is everything that the hub signs, seals and certifies with.
type Keyring struct {
	// HubID names the hub: the first 16 hexadecimal digits of the hash of the hub
	// CA's public key.
	HubID string
	// HubCA certifies agents, the gateway, and people without a host cluster.
	HubCA CA
	// OrderKey signs orders and heads.
	OrderKey OrderKey
	// SealingKey encrypts the sealed layers at rest.
	SealingKey SealingKey
	// MACKey masks the values of Secrets in renders. It never changes: that would
	// roll out the whole fleet.
	MACKey []byte
	// ServingCA certifies the API server towards the host's aggregator.
	ServingCA CA
}

// OrderKey signs orders.
type OrderKey struct {
	// KeyID is the first 16 hexadecimal digits of the public key's hash.
	KeyID   string
	Private ed25519.PrivateKey
	Public  ed25519.PublicKey
}

// SealingKey encrypts at rest.
type SealingKey struct {
	// ID is in every blob that was sealed with the key. It tells nothing of it.
	ID  string
	Key [sealingKeySize]byte
}

// Load reads all keys from the vault and makes those that are empty.
func Load(ctx context.Context, vault Vault, clk clock.PassiveClock) (*Keyring, error) {
	k := &Keyring{}
	steps := []struct {
		name string
		make func() (map[string][]byte, error)
		read func(map[string][]byte) error
	}{
		{SecretHubCA, func() (map[string][]byte, error) { return newCA("convoy hub CA", clk) }, func(d map[string][]byte) (err error) {
			k.HubCA, err = readCA(d)
			return err
		}},
		{SecretServingCA, func() (map[string][]byte, error) { return newCA("convoy serving CA", clk) }, func(d map[string][]byte) (err error) {
			k.ServingCA, err = readCA(d)
			return err
		}},
		{SecretOrderKey, newOrderKey, func(d map[string][]byte) (err error) {
			k.OrderKey, err = readOrderKey(d)
			return err
		}},
		{SecretSealingKey, func() (map[string][]byte, error) { return newRaw(sealingKeySize) }, func(d map[string][]byte) error {
			raw, err := readRaw(d, sealingKeySize)
			if err != nil {
				return err
			}
			k.SealingKey = SealingKey{ID: keyID(append([]byte("convoy sealing key "), raw...)), Key: [sealingKeySize]byte(raw)}
			return nil
		}},
		{SecretMACKey, func() (map[string][]byte, error) { return newRaw(macKeySize) }, func(d map[string][]byte) (err error) {
			k.MACKey, err = readRaw(d, macKeySize)
			return err
		}},
	}
	for _, s := range steps {
		data, err := loadOrMake(ctx, vault, s.name, s.make)
		if err != nil {
			return nil, err
		}
		if err := s.read(data); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.name, err)
		}
	}
	k.HubID = keyID(k.HubCA.Certificate.RawSubjectPublicKeyInfo)
	return k, nil
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

func newRaw(size int) (map[string][]byte, error) {
	raw := make([]byte, size)
	if _, err := rand.Read(raw); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return map[string][]byte{fieldKey: raw}, nil
}

func readRaw(data map[string][]byte, size int) ([]byte, error) {
	raw := data[fieldKey]
	if len(raw) != size {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", ErrBroken, len(raw), size)
	}
	return raw, nil
}

func newOrderKey() (map[string][]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate order key: %w", err)
	}
	encoded, err := encodeKey(private)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{fieldKey: encoded}, nil
}

func readOrderKey(data map[string][]byte) (OrderKey, error) {
	key, err := decodeKey(data[fieldKey])
	if err != nil {
		return OrderKey{}, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return OrderKey{}, fmt.Errorf("%w: not an Ed25519 key", ErrBroken)
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return OrderKey{}, fmt.Errorf("%w: no public half", ErrBroken)
	}
	return OrderKey{KeyID: keyID(public), Private: private, Public: public}, nil
}

func keyID(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
