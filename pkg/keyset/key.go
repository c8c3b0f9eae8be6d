// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"time"
)

// Signing is a key that signs orders.
type Signing struct {
	// KeyID is the first 16 hexadecimal digits of the public key's hash.
	KeyID   string
	Private ed25519.PrivateKey
	Public  ed25519.PublicKey
}

// Sealing is a key that encrypts at rest.
type Sealing struct {
	// ID is in every blob that was sealed with the key. It tells nothing of it.
	ID  string
	Key [sealingKeySize]byte
}

// CAs reads a set of CAs, the current one first.
func CAs(data map[string][]byte) ([]CA, error) {
	return readAll(data, func(d map[string][]byte) (CA, error) { return readCA(d[fieldCertificate], d[fieldPrivateKey]) })
}

// SigningKeys reads a set of order keys, the current one first.
func SigningKeys(data map[string][]byte) ([]Signing, error) { return readAll(data, readSigning) }

// SealingKeys reads a set of sealing keys, the current one first.
func SealingKeys(data map[string][]byte) ([]Sealing, error) {
	return readAll(data, func(d map[string][]byte) (Sealing, error) {
		raw, err := readRaw(d, sealingKeySize)
		if err != nil {
			return Sealing{}, err
		}
		return Sealing{ID: sealingID(raw), Key: [sealingKeySize]byte(raw)}, nil
	})
}

// MAC reads the MAC key.
func MAC(data map[string][]byte) ([]byte, error) { return readRaw(data, macKeySize) }

func readAll[T any](data map[string][]byte, read func(map[string][]byte) (T, error)) ([]T, error) {
	current, err := read(data)
	if err != nil {
		return nil, err
	}
	out := []T{current}
	for _, id := range oldIDs(data) {
		old, err := read(oldFields(data, id))
		if err != nil {
			return nil, fmt.Errorf("old key %s: %w", id, err)
		}
		out = append(out, old)
	}
	return out, nil
}

func caOf(name string) func(time.Time) (map[string][]byte, error) {
	return func(now time.Time) (map[string][]byte, error) { return newCA(name, now) }
}

func caEntry(data map[string][]byte) (Entry, error) {
	ca, err := readCA(data[fieldCertificate], data[fieldPrivateKey])
	if err != nil {
		return Entry{}, err
	}
	return Entry{ID: ca.ID, NotAfter: ca.Certificate.NotAfter}, nil
}

func newSigningKey(time.Time) (map[string][]byte, error) {
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

func readSigning(data map[string][]byte) (Signing, error) {
	key, err := decodeKey(data[fieldKey])
	if err != nil {
		return Signing{}, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return Signing{}, fmt.Errorf("%w: not an Ed25519 key", ErrBroken)
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return Signing{}, fmt.Errorf("%w: no public half", ErrBroken)
	}
	return Signing{KeyID: keyID(public), Private: private, Public: public}, nil
}

func signingEntry(data map[string][]byte) (Entry, error) {
	key, err := readSigning(data)
	return Entry{ID: key.KeyID}, err
}

func rawOf(size int) func(time.Time) (map[string][]byte, error) {
	return func(time.Time) (map[string][]byte, error) {
		raw := make([]byte, size)
		if _, err := rand.Read(raw); err != nil {
			return nil, fmt.Errorf("read random bytes: %w", err)
		}
		return map[string][]byte{fieldKey: raw}, nil
	}
}

func readRaw(data map[string][]byte, size int) ([]byte, error) {
	raw := data[fieldKey]
	if len(raw) != size {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", ErrBroken, len(raw), size)
	}
	return raw, nil
}

func rawEntry(size int) func(map[string][]byte) (Entry, error) {
	return func(data map[string][]byte) (Entry, error) {
		raw, err := readRaw(data, size)
		if err != nil {
			return Entry{}, err
		}
		return Entry{ID: sealingID(raw)}, nil
	}
}

// sealingID names a secret of full entropy without telling anything of it.
func sealingID(raw []byte) string { return keyID(append([]byte("convoy sealing key "), raw...)) }
