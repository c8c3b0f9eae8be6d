// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Names of the sets: of Secrets, and of files without a host cluster.
const (
	HubCA      = "convoy-hub-ca"
	OrderKey   = "convoy-order-key"
	SealingKey = "convoy-sealing-key"
	MACKey     = "convoy-mac-key"
	ServingCA  = "convoy-serving-ca"
)

// Names lists them all.
func Names() []string { return []string{HubCA, OrderKey, SealingKey, MACKey, ServingCA} }

// Fields of a set. Those of an old key are oldPrefix, its ID, a dot and the field.
const (
	fieldCertificate = "tls.crt" // PEM
	fieldPrivateKey  = "tls.key" // PEM, PKCS 8
	fieldKey         = "key"     // raw bytes; the order key PEM, PKCS 8
	fieldHub         = "hub"     // of the hub CA: the hub's id, once the first CA was rotated
	oldPrefix        = "old."
)

// Entry tells of one key. Nothing in it is secret.
type Entry struct {
	ID string
	// Old: still accepted, not used for anything new.
	Old bool
	// NotAfter of a CA's certificate; zero for other keys.
	NotAfter time.Time
}

// form is what differs between the sets.
type form struct {
	create func(now time.Time) (map[string][]byte, error)
	read   func(fields map[string][]byte) (Entry, error)
	fields []string
	fixed  bool
}

var forms = map[string]form{
	HubCA:      {create: caOf("convoy hub CA"), read: caEntry, fields: []string{fieldCertificate, fieldPrivateKey}},
	ServingCA:  {create: caOf("convoy serving CA"), read: caEntry, fields: []string{fieldCertificate, fieldPrivateKey}, fixed: true},
	OrderKey:   {create: newSigningKey, read: signingEntry, fields: []string{fieldKey}},
	SealingKey: {create: rawOf(sealingKeySize), read: rawEntry(sealingKeySize), fields: []string{fieldKey}},
	MACKey:     {create: rawOf(macKeySize), read: rawEntry(macKeySize), fields: []string{fieldKey}, fixed: true},
}

func formOf(name string) (form, error) {
	f, ok := forms[name]
	if !ok {
		return form{}, fmt.Errorf("%w: %q", ErrUnknownSet, name)
	}
	return f, nil
}

// Create makes a set with its first key.
func Create(name string, now time.Time) (map[string][]byte, error) {
	f, err := formOf(name)
	if err != nil {
		return nil, err
	}
	return f.create(now)
}

// List tells of the keys of a set, the current one first, old ones by their ID.
func List(name string, data map[string][]byte) ([]Entry, error) {
	f, err := formOf(name)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	current, err := f.read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := []Entry{current}
	for _, id := range oldIDs(data) {
		entry, err := f.read(oldFields(data, id))
		if err == nil && entry.ID != id {
			err = fmt.Errorf("%w: it is not the key that its field names", ErrBroken)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: old key %s: %w", name, id, err)
		}
		entry.Old = true
		out = append(out, entry)
	}
	return out, nil
}

// Rotate makes a new current key. The one before stays accepted until it is
// retired. data is left as it is.
func Rotate(name string, data map[string][]byte, now time.Time) (map[string][]byte, Entry, error) {
	f, err := formOf(name)
	if err != nil {
		return nil, Entry{}, err
	}
	entries, err := List(name, data)
	switch {
	case err != nil:
		return nil, Entry{}, err
	case f.fixed:
		return nil, Entry{}, fmt.Errorf("%s: %w", name, ErrFixed)
	case len(entries) == 0:
		return nil, Entry{}, fmt.Errorf("%s: %w", name, ErrEmpty)
	case len(entries) > maxOld:
		return nil, Entry{}, fmt.Errorf("%s: %w", name, ErrTooMany)
	}
	fresh, err := f.create(now)
	if err != nil {
		return nil, Entry{}, err
	}
	entry, err := f.read(fresh)
	if err != nil {
		return nil, Entry{}, err
	}
	out := maps.Clone(data)
	for _, field := range f.fields {
		out[oldPrefix+entries[0].ID+"."+field] = data[field]
		out[field] = fresh[field]
	}
	if _, named := out[fieldHub]; name == HubCA && !named {
		out[fieldHub] = []byte(entries[0].ID) // what was signed for the hub stays the hub's
	}
	return out, entry, nil
}

// Retire takes an old key out of a set. data is left as it is.
func Retire(name string, data map[string][]byte, id string) (map[string][]byte, error) {
	f, err := formOf(name)
	if err != nil {
		return nil, err
	}
	entries, err := List(name, data)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id })
	switch {
	case at < 0:
		return nil, fmt.Errorf("%s: %w: %q", name, ErrNoSuchKey, id)
	case !entries[at].Old:
		return nil, fmt.Errorf("%s: %w", name, ErrCurrent)
	}
	out := maps.Clone(data)
	for _, field := range f.fields {
		delete(out, oldPrefix+id+"."+field)
	}
	return out, nil
}

// HubID is the hub's name in certificates, orders and owner marks: the first 16
// hexadecimal digits of the hash of its first CA's public key.
func HubID(data map[string][]byte) (string, error) {
	if hub := string(data[fieldHub]); hub != "" {
		return hub, nil
	}
	entry, err := caEntry(data)
	return entry.ID, err
}

// oldIDs of a set, sorted.
func oldIDs(data map[string][]byte) []string {
	var out []string
	for field := range data {
		if rest, ok := strings.CutPrefix(field, oldPrefix); ok {
			if id, _, ok := strings.Cut(rest, "."); ok && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

func oldFields(data map[string][]byte, id string) map[string][]byte {
	out := map[string][]byte{}
	for field, value := range data {
		if rest, ok := strings.CutPrefix(field, oldPrefix+id+"."); ok {
			out[rest] = value
		}
	}
	return out
}

func keyID(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
